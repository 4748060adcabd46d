"""Thinc models: the encoder layer, the listener, one scorer a task."""

"""Thinc models: the encoder layer, the listener, and one scorer per task."""

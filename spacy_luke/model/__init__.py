"""The network in plain torch: no spaCy, no Thinc, no files."""

"""Corpora: readers that turn annotated files into ``Doc`` objects, and a training corpus.

``formats`` names the file formats of ``spacy luke convert``; ``preset`` holds the registered
reader that gives gold entities to the predicted side of every example.
"""

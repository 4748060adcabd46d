"""Annotated files to ``Doc`` objects, and corpus readers for training.

``formats`` lists the file formats of ``spacy luke convert``. ``preset`` and ``joined`` are the
registered readers, ``contexts`` and ``case`` the registered batchers.
"""

"""Metrics of predicted annotation, as shown by ``spacy evaluate`` and training.

spaCy's registry calls a metric a scorer. Scorers in ``layers`` are layers that score spans.
"""

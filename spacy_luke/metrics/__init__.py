"""How right predicted annotations are: what ``spacy evaluate`` and training show.

A metric is what spaCy's registry calls a scorer; the scorers of ``layers`` are layers that score
spans.
"""

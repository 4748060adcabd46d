"""LUKE (Yamada et al., EMNLP 2020) as a native part of spaCy.

Importing this package registers its custom attributes of documents and spans
(:mod:`spacy_luke.annotations.attributes`). Beside spaCy, which imports torch if it is installed, it
imports no other package of ours or others. spaCy finds the components, architectures, readers and
commands through entry points (see ``setup.cfg``).
"""

from .annotations.attributes import register

__version__ = "0.1.0"

register()

"""LUKE (Yamada et al., EMNLP 2020) as a native part of spaCy.

Importing this package is cheap: it imports neither torch nor pyarrow. spaCy finds the
components, architectures, readers and commands through entry points (see ``setup.cfg``).
"""

__version__ = "0.1.0"

"""Annotation of a ``Doc`` that spaCy does not have: relations, entity types, candidates of links,
questions, queries with a gap; also scores and vectors.

It is stored as plain numbers and strings in ``Doc.user_data``, under the keys that spaCy uses for
custom attributes of spans (character offsets). So it survives ``DocBin`` (with
``store_user_data``), bytes and other processes, and ``Doc.from_docs`` and
``Span.as_doc(copy_user_data=True)`` keep it, but for what is set of a whole document (which layers
are annotated, questions and queries). Scores are those of spans groups, which spaCy stores.
"""

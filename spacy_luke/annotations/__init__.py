"""What travels on a ``Doc`` beside spaCy's own annotation: relations and entity types.

Stored as plain numbers and strings in ``Doc.user_data``, keyed as spaCy keys the attributes of
spans, by character offsets: so they survive ``DocBin`` (with ``store_user_data``), bytes and other
processes, and ``Doc.from_docs`` and ``Span.as_doc(copy_user_data=True)`` move them along.
"""

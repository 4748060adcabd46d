"""From ``Doc`` and spans to packed network inputs: pieces, windows, entities."""

"""Pages of documents: what they show (data), arcs (drawing), HTML (templates)."""

"""From a MediaWiki export to plain text with links at character offsets.

``export`` cuts dumps into partitions and reads their pages. ``markup`` converts the wikitext of a
page to plain text with links. Both process one page at a time, with bounded memory.
"""

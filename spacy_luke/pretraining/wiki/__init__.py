"""From a MediaWiki export to text whose links are known by character offsets.

``export`` cuts dumps into partitions and reads their pages, ``markup`` turns the wikitext of a
page into plain text with links. Both work page by page, with bounded memory.
"""

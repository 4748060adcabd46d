"""Lists of names, and where the names are in texts."""

"""Published files to models: the only floor that knows foreign weight names."""

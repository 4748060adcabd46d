"""Word pieces and entities: strings to ids."""

"""Vocabularies of word pieces and entities: strings to ids."""

"""Multilingual sentence vectors as a guesser: it reads the foreign text itself."""

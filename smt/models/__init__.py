"""Translators of our own: Transformer, vocabulary, search, and the two ways in which a run uses them."""

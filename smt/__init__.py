"""Translators: neural wait-k models, command-line systems and fixed outputs."""

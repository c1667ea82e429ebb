"""Simultaneous MT: our trained translators, external engines, recorded outputs, and the policies around them."""

"""Simultaneous MT: trained translators, engines of others, recorded outputs, and policies around them."""

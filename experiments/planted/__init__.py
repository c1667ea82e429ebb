"""Errors planted in human translations: kinds, materials, the training of the detector, and how well it finds them."""

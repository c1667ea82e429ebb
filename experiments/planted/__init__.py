"""Errors planted in human translations: kinds, materials, training of the detector, and its accuracy."""

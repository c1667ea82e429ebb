"""Training of the Transformer from parallel text."""

"""From parallel text to a trained Transformer."""

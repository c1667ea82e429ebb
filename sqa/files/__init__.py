"""File input and output: atomic writes, the result store, models, strict readers."""

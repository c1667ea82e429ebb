"""Files in and out: atomic writing, the store, models, strict readers."""

"""Questions about any text, and the moment at which a reader of a translation can answer them (docs/ask.md)."""

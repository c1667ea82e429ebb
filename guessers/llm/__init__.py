"""Large language models as guessers."""

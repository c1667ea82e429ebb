"""Additional studies: guessers, buzzers, translators, people, planted errors."""

"""Reports of our own: guessers, buzzers, translators, people, planted errors."""

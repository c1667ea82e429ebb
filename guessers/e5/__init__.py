"""A guesser that reads the untranslated text with multilingual sentence vectors."""

"""A guesser that reads the untranslated text by multilingual sentence vectors."""

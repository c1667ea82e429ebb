"""The rerank guesser: reorders the best retrieved pages by the requested kind of answer and the names in the text."""

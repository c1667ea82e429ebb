"""The rerank guesser, which reorders the best retrieved pages by the kind of answer and the names in the text."""

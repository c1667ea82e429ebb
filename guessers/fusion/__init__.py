"""The fusion guesser: several guessers as one, by reciprocal rank or by learnt weights."""

"""Support for the claims: texts at equal pace, word order, error rates, limits, and the history of the claims."""

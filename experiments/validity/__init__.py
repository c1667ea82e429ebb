"""Evidence for the validity of the claims: texts at equal pace, word order, limits, and the history of the claims."""

"""What the results can support: text compared at equal pace, error rates, limits, history of the claims."""

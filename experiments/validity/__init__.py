"""Support for the claims: texts compared at equal pace, error rates, limits, and the history of the claims."""

"""Step-wise errors of wait-k translations: their detection, the choice of examples, and their figures."""

"""Step-wise errors of wait-k translations: which are found, which one is shown, and how."""

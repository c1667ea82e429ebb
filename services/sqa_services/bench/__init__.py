"""How fast and how small, beside others' programs."""

"""Which word hurt: word alignment of source and translation, and step-wise errors found with it."""

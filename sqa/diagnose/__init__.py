"""Word alignment of source and translation, and the step-wise errors derived from it."""

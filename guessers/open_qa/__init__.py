"""Short answers from retrieved passages, for questions whose answer is not a page."""

"""Short answers from retrieved passages, for questions whose answer is no page."""

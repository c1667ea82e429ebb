"""Short answers from retrieved passages, for questions that are not answered by a page."""

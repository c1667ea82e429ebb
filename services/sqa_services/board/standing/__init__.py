"""What decides where a model stands: plausibility, views, the rank."""

"""What finished runs are made into for readers: reports, pages, figures, curves, correlations."""

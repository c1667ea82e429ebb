"""Reports, pages, figures, curves and correlations of finished runs."""

"""Parts of your own (`places`, their `code`, what they may return: `answers`, `parts`), and of packages (`plugins`)."""

"""Parts of your own: where they are (`places`), their code (`code`), what they may return (`answers`, `parts`)."""

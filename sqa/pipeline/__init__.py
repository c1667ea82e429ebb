"""Execute runs: config, the four stages, result folders, and many runs on workers."""

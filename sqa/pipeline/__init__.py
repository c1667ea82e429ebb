"""One run: its config, the four stages, and the folder that it leaves; many runs on workers."""

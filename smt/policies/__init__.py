"""When to read and when to write, whoever translates."""

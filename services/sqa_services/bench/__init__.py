"""Benchmarks of speed and memory, in comparison with other programs."""

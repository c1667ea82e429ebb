"""Benchmarks of this checkout beside other programs (`make bench`); they are in no wheel."""

"""Data sets and derived data: questions, tossups, parallel text, human buzzes, perturbed copies."""

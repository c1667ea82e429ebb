"""Data sets and what is made of them: questions, tossups, parallel text, human buzzes, perturbed copies."""

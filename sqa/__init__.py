"""Simultaneous translation evaluated by question answering (Han, Carpuat and Boyd-Graber, EMNLP 2022)."""

__version__ = "0.1.0"

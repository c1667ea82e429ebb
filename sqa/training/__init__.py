"""Shared parts of gradient-based training: the loop over rounds, and checkpoints."""

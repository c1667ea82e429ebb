"""Shared parts of gradient training: the loop over rounds, and checkpoints."""

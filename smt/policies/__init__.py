"""Policies: when to read and when to write."""

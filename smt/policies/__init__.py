"""Policies, which decide when to read and when to write."""

"""User-defined parts: `code` imports the user's code, and `parts` wraps parts and checks the values that they return.

A run without user-defined parts does not import this package.
"""

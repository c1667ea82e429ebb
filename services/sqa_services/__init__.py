"""Servers, clients and wire formats of SQA, a distribution of their own: ARCHITECTURE.md, "Services"."""

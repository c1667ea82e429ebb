"""Servers, clients and wire formats of SQA, as a separate distribution: ARCHITECTURE.md, "Services"."""

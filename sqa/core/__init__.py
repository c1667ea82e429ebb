"""Base package of the project: values, contracts, errors, the trace.  It imports no other package of the project."""

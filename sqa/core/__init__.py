"""What the whole task is said in: values, contracts, errors, the trace, the store.  Knows no other room."""

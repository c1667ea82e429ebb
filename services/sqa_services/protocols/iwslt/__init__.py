"""Simultaneous translation evaluated over HTTP, as at IWSLT 2020: the server, its clients, its scores."""

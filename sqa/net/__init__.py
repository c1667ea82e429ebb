"""HTTP with limits of time and size: the client for downloads and external services."""

"""HTTP within limits: the client of downloads and of other people's services."""

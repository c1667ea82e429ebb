"""HTTP within limits: what all servers of the project have in common; the client is `sqa/net`."""

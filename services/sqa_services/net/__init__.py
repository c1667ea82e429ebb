"""HTTP servers with limits: code that all servers of the project share; the client is in `sqa/net`."""

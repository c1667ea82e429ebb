"""HTTP, within limits: what all servers and all clients of the project have in common."""

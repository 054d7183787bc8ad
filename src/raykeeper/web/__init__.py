"""HTTP servers and what they pass on, for programs that stand between a client and another server."""

"""Local copies of objects that follow the API server."""

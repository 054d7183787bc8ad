"""The proxy beside the API server that asks every caller for a token."""

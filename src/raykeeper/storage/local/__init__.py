"""A store in a local folder."""

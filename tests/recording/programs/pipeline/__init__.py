"""A package of the user's own."""

"""Rules that explain failures: small pure functions, gathered in one table."""

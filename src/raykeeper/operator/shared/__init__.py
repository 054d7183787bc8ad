"""What the controllers of all four kinds are built from. Nothing here knows one of them."""

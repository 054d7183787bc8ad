"""Questions to Ray heads, asked in the background, and orders to them."""

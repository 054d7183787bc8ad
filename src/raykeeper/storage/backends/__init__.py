"""Which stores there are: one row per backend, with everything that differs between them."""

"""Ray's dashboard API for a session: one file per family of endpoints. `routes.py` is the table of all."""

"""Ray's dashboard API for a session of the past: one file per endpoint, with its query, its shape and its route."""

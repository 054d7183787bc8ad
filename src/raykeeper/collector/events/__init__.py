"""Ray's events: received and on disk before the answer, sealed into segments, uploaded, and only then deleted."""

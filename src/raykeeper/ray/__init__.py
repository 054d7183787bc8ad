"""The only code that talks to a Ray head."""

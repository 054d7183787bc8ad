"""The only code that talks to an object store."""

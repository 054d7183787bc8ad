"""How long sessions are kept, and how those that are not are removed."""

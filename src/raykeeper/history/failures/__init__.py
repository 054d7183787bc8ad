"""Every kind of failure across all sessions: since when, how often, where, and whether it is gone."""

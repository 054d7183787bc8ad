"""The jobs of all clusters in one order: from summaries of past sessions, and from what running ones said last."""

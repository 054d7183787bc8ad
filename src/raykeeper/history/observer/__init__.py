"""Watches Kubernetes for the history: what became of Ray's pods, what Events said, which clusters are gone."""

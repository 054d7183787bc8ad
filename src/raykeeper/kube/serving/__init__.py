"""Metrics and probes over HTTP."""

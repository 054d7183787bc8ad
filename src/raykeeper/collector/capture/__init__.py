"""Captures a cluster that never had a collector, once: what its dashboard and log folders still hold."""

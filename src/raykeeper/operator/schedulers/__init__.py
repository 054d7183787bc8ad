"""Batch schedulers that start the pods of a cluster together."""

"""The loop around a reconcile: queue, workers, failures, writes in flight."""

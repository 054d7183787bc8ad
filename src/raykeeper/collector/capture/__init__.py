"""A cluster that never had the collector: what its dashboard and its log folders still hold, taken once."""

"""An open session and the means to query it: DuckDB, cache, logs and what Kubernetes said."""

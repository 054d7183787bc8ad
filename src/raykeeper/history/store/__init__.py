"""What a bucket says without opening a session: catalog, states, heartbeats and Kubernetes facts."""

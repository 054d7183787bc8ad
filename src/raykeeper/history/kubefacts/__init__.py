"""What Kubernetes said about clusters, read back from the store."""

"""Messages of the API into Kubernetes objects and back. Pure."""

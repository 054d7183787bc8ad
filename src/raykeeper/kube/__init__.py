"""The only code that talks to the Kubernetes API server, and the controller runtime on top of it."""

"""The second version of the API: the Kubernetes API itself, as far as it is about Ray."""

"""Kubernetes Events, written in the background as series."""

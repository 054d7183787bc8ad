"""Stores that KubeRay 1.7 wrote, read as they are: its objects seen as those of our layout."""

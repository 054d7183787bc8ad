"""RayCluster: read, decide, act."""

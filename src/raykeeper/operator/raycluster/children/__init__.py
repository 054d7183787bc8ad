"""What a RayCluster needs besides its pods: each child as it should be, and what to do about one that drifted. Pure."""

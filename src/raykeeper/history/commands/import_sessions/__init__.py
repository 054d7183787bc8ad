"""`raykeeper import`: sessions from KubeRay's buckets and from disks, copied into a store in our layout."""

"""RayClusters, RayJobs, RayServices and RayCronJobs that exist in Kubernetes now: read, never written."""

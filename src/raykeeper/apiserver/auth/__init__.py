"""Who calls, and in whose rights Kubernetes is asked for it."""

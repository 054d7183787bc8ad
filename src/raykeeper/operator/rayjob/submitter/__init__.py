"""What gives a job to Ray: a Kubernetes Job, or a container beside the head."""

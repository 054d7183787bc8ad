"""What the node uses, every ten seconds: read from Ray's agent and the pod, kept on disk, sent by the hour."""

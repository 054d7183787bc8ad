"""Program: the sidecar that keeps what Ray says, before its pod is gone."""

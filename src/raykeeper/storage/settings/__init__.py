"""Which store to talk to: read from KubeRay's variables and file, or from a URL. Pure, but for reading that file."""

"""KubeRay's own routes at the root: the ways in which its history server differs from Ray's dashboard."""

"""KubeRay's Python client under its own names: a script changes its imports alone (docs/client.md)."""

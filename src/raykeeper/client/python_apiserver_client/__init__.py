"""KubeRay's Python client of V1 under its own names: a script changes its imports alone (docs/client.md)."""

from raykeeper.client.python_apiserver_client.kuberay_apis import KubeRayAPIs

__all__ = ["KubeRayAPIs"]

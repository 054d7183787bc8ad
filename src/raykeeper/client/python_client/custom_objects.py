"""Requests as KubeRay's client makes them, for both of its classes."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlencode

from raykeeper.api.meta import JSON, Resource
from raykeeper.client.python_client import constants
from raykeeper.client.sync_client import Client

_PATCHES = {True: "application/json-patch+json", False: "application/merge-patch+json"}


class CustomObjects:
    """Objects of one kind, as kubeconfig or the pod's service account may see them."""

    def __init__(self, resource: Resource[JSON], name: str) -> None:
        constants.say_as_kuberay_does()
        self.log = logging.getLogger(name)
        self._resource = resource
        self._client: Client | None = Client()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> JSON:
        if self._client is None:
            raise ValueError("the client is closed")
        return self._client.request(method, path, body, content_type=content_type)

    def list(self, namespace: str, label_selector: str) -> JSON:
        query = f"?{urlencode({'labelSelector': label_selector})}" if label_selector else ""
        return self.send("GET", self._resource.path(namespace) + query)

    def get(self, namespace: str, name: str, subresource: str | None = None) -> JSON:
        return self.send("GET", self._resource.path(namespace, name, subresource))

    def create(self, namespace: str, body: Any) -> JSON:
        if body is None:
            raise ValueError("a body is needed")
        return self.send("POST", self._resource.path(namespace), body)

    def patch(self, namespace: str, name: str, body: Any) -> JSON:
        """A list is a JSON patch, anything else a merge patch."""
        return self.send("PATCH", self._resource.path(namespace, name), body, _PATCHES[isinstance(body, list)])

    def delete(self, namespace: str, name: str) -> JSON:
        return self.send("DELETE", self._resource.path(namespace, name), {"kind": "DeleteOptions", "apiVersion": "v1"})

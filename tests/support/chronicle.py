"""What happened to the objects of a namespace since some moment, as the API server itself remembers it.

A look at two moments does not show a pod that came and went between them; a watch from the first moment on does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON, Resource

REPLAY_SECONDS = 3  # the server sends what it remembers at once, and ends the watch after this


class Change(NamedTuple):
    what: str
    """ADDED, MODIFIED or DELETED."""
    kind: str
    name: str


class Chronicle:
    """Changes of some kinds in one namespace, from now on."""

    def __init__(self, plane: ControlPlane, namespace: str, kinds: Sequence[Resource[Any]]) -> None:
        self._plane = plane
        self._namespace = namespace
        lists = [(kind, plane.admin.get(kind.path(namespace))) for kind in kinds]
        self._since = [(kind, found["metadata"]["resourceVersion"]) for kind, found in lists]

    def changes(self) -> list[Change]:
        """Everything so far, kind by kind in the order it happened."""
        with ThreadPoolExecutor() as pool:
            replayed = pool.map(lambda since: self._replay(*since), self._since)
            return [change for changes in replayed for change in changes]

    def _replay(self, kind: Resource[Any], version: str) -> list[Change]:
        path = f"{kind.path(self._namespace)}?watch=true&resourceVersion={version}&timeoutSeconds={REPLAY_SECONDS}"
        events: list[JSON] = [json.loads(line) for line in self._plane.admin.raw("GET", path).splitlines()]
        return [Change(event["type"], kind.kind, event["object"]["metadata"]["name"]) for event in events]

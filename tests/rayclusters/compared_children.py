"""How the children that two operators made of one spec differ, field by field, whole objects compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayclusters.stored_children import normalised
from raykeeper.api import labels
from raykeeper.api.meta import JSON

ABSENT = "<absent>"
OF_THE_SERVER = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"})
"""Metadata that the server gives each object."""
GIVEN_OUT = frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "nodeName"})
"""Addresses, ports and nodes that the server chose among free ones."""
TOKEN_VOLUME = re.compile(r"kube-api-access-\w{5}")


@dataclass(frozen=True)
class Difference:
    cluster: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.cluster} {self.path}:\n    KubeRay {self.theirs!r}\n    we      {self.ours!r}"


def differences(cluster: str, theirs: Sequence[JSON], ours: Sequence[JSON]) -> Iterator[Difference]:
    """Every field in which two lists of comparable children differ; children are told apart by kind and place."""
    for path, one, other in _differences("", _by_place(theirs), _by_place(ours)):
        yield Difference(cluster, path, one, other)


def comparable(cluster: JSON, children: Sequence[JSON], version: str) -> list[JSON]:
    """Children without what the server chose for them, and without what is random in them."""
    return [without_choices(child) for child in normalised(cluster, children, version)]


def without_choices(child: JSON) -> JSON:
    """A child without what the server chose for it."""
    metadata = {name: value for name, value in child["metadata"].items() if name not in OF_THE_SERVER}
    annotations = metadata.get("annotations", {})
    if labels.RECREATE_HASH in annotations:  # each operator has its own, which is why the version stands beside it
        annotations[labels.RECREATE_HASH] = "HASH"
    rest = {name: _plain(value) for name, value in child.items() if name not in ("metadata", "status")}
    return {**rest, "metadata": metadata}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _plain(part) for name, part in value.items() if name not in GIVEN_OUT or part in ("None", ["None"])
        }
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return TOKEN_VOLUME.sub("kube-api-access", value) if isinstance(value, str) else value


def _by_place(children: Sequence[JSON]) -> dict[str, JSON]:
    """Children by kind and name, those of one name by their number."""
    placed: dict[str, JSON] = {}
    for child in children:
        place = f"{child['kind']}/{child['metadata']['name']}"
        number = sum(key.partition("#")[0] == place for key in placed)
        placed[f"{place}#{number}" if number else place] = child
    return placed


def _differences(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        yield from _of_fields(path, theirs, ours)
    elif isinstance(theirs, list) and isinstance(ours, list):
        yield from _of_lists(path, theirs, ours)
    elif theirs != ours:
        yield path, theirs, ours


def _of_fields(path: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        yield from _differences(f"{path}/{name}" if path else name, theirs.get(name, ABSENT), ours.get(name, ABSENT))


def _of_lists(path: str, theirs: list[Any], ours: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Items by their names where all have one, with the order as a field of its own; else by their numbers."""
    their_names, our_names = _by_name(theirs), _by_name(ours)
    if their_names is None or our_names is None:
        yield from _of_fields(path, *({str(number): item for number, item in enumerate(one)} for one in (theirs, ours)))
        return
    yield from _of_fields(path, their_names, our_names)
    their_order = [name for name in their_names if name in our_names]
    our_order = [name for name in our_names if name in their_names]
    if their_order != our_order:
        yield f"{path}/order", their_order, our_order


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Items by name, and by path where one volume is mounted twice; None where some have none, or the same."""
    if not all(isinstance(item, dict) and "name" in item for item in items):
        return None
    by_name = {f"{item['name']}{item.get('mountPath', '').replace('/', '.')}": item for item in items}
    return by_name if len(by_name) == len(items) else None

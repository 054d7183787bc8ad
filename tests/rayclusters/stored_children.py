"""What became of a RayCluster on a real API server: its children, without what the server added or chance decided.

The rule for what is left out is one: of a stored object, only the fields that the operator sent are looked at. What the
server made of their values stays (a quantity in its canonical form), and a field that it did not keep is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Resource
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import (
    CONFIG_MAPS,
    INGRESSES,
    JOBS,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)

LOOKED_AT: Final[Sequence[Resource[Any]]] = (
    CONFIG_MAPS,
    INGRESSES,
    JOBS,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
"""Kinds of children, and others of which there should be none."""

RANDOM_END: Final = "xxxxx"
"""Stands for what is random at the end of a name."""

Sent = dict[tuple[str, str], JSON]
"""What was sent to create an object, by its kind and name."""


async def stored_children(kube: Kube, namespace: str) -> dict[str, list[JSON]]:
    """All children in a namespace, by the name of their cluster."""
    found: dict[str, list[JSON]] = {}
    for resource in LOOKED_AT:
        for item in await kube.list(resource.read_as(dict), namespace):
            cluster = _cluster_of(item)
            if cluster is not None:
                child = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
                found.setdefault(cluster, []).append(child)
    return found


def _cluster_of(item: JSON) -> str | None:
    """The owner, or who the label names: a claim that outlives its cluster has no owner."""
    metadata = item["metadata"]
    owners = [owner["name"] for owner in metadata.get("ownerReferences", ()) if owner["kind"] == "RayCluster"]
    marked: str | None = metadata.get("labels", {}).get(labels.CLUSTER)
    return owners[0] if owners else marked


def kept(sent: Any, stored: Any) -> Any:
    """The stored values of what was sent. The server adds to the ends of lists only."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return {name: kept(part, stored[name]) for name, part in sent.items() if name in stored}
    if isinstance(sent, list) and isinstance(stored, list):
        return [kept(*parts) for parts in zip(sent, stored, strict=False)]
    return stored


def lost(sent: Any, stored: Any, path: str = "") -> Iterator[str]:
    """The paths of what was sent and is not stored; empty values are nothing to lose."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        for name, part in sent.items():
            if name in stored:
                yield from lost(part, stored[name], f"{path}.{name}")
            elif part not in (None, "", [], {}):
                yield f"{path}.{name}"
    elif isinstance(sent, list) and isinstance(stored, list):
        for index, part in enumerate(sent):
            if index < len(stored):
                yield from lost(part, stored[index], f"{path}[{index}]")
            else:
                yield f"{path}[{index}]"


def normalised(cluster: JSON, children: Sequence[JSON], version: str) -> list[JSON]:
    """Children by kind and name, with what differs from run to run replaced."""
    metadata = cluster["metadata"]
    text = json.dumps(children)
    for found, shown in {
        metadata["uid"]: "THE-UID",
        metadata["namespace"]: "the-namespace",
        version: "VERSION",
    }.items():
        text = text.replace(found, shown)
    shown_children = json.loads(text)
    replicas = _numbered_replicas([child["metadata"].get("labels", {}) for child in shown_children])
    for child in shown_children:
        _take_out_chance(child, replicas)
    return sorted(shown_children, key=_order)


def _numbered_replicas(marks: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """A plain name for each replica that spans hosts, in the order of their indexes."""
    found = {(mark[labels.REPLICA_INDEX], mark[labels.REPLICA_NAME]) for mark in marks if labels.REPLICA_NAME in mark}
    return {
        name: f"{name[: -len(RANDOM_END)]}{RANDOM_END[1:]}{number}" for number, (_, name) in enumerate(sorted(found))
    }


def _take_out_chance(child: JSON, replicas: Mapping[str, str]) -> None:
    metadata = child["metadata"]
    if child["kind"] == "Secret":
        child["data"] = dict.fromkeys(child["data"], "RANDOM")
    if child["kind"] == "Pod":
        metadata["name"] = _without_end(metadata["name"])
        if replica := metadata["labels"].get(labels.REPLICA_NAME):
            metadata["labels"][labels.REPLICA_NAME] = replicas[replica]


def _without_end(name: str) -> str:
    """A name with its random end made plain; a fixed name of a head has none."""
    start, _, end = name.rpartition("-")
    return f"{start}-{RANDOM_END}" if len(end) == len(RANDOM_END) else name


def _order(child: JSON) -> tuple[str, str, str, str]:
    marks = child["metadata"].get("labels", {})
    indexes = marks.get(labels.REPLICA_INDEX, ""), marks.get(labels.REPLICA_HOST_INDEX, "")
    return child["kind"], child["metadata"]["name"], *indexes

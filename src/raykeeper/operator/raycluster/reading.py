"""A RayCluster out of the cache, also one that nobody can make sense of."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from raykeeper.api.meta import Object
from raykeeper.api.raycluster import HeadGroupSpec, RayCluster, RayClusterSpec, RayClusterStatus
from raykeeper.api.structs import parse_part
from raykeeper.operator.shared.violations import Violation

_PLACE: Final = re.compile(r"(?P<found>.*) - at `\$(?P<path>.*)`")
"""How msgspec says what is wrong where."""


def read_cluster(item: Object) -> tuple[RayCluster, list[Violation]]:
    """The cluster, and what of its spec cannot be read; then it has an empty one, so that it can be spoken of and
    deleted. The schema of `v1` lets no such spec pass, but that of `v1alpha1` does.
    """
    try:
        return RayCluster.from_object(item), []
    except msgspec.ValidationError as error:
        return RayCluster(item.metadata, RayClusterSpec(HeadGroupSpec({})), _status(item)), [_violation(str(error))]


def _status(item: Object) -> RayClusterStatus:
    try:
        return parse_part(item.status, RayClusterStatus)
    except msgspec.ValidationError:
        return RayClusterStatus()


def _violation(text: str) -> Violation:
    match = _PLACE.fullmatch(text)
    path, found = (match["path"], match["found"]) if match else ("", text)
    return Violation(f"spec{path}", f"cannot be read ({found})", "write it as the schema of ray.io/v1 says")

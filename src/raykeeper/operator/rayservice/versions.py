"""Whether a cluster was made for the present spec. Pure.

A cluster carries a hash of the spec it was made for, and the version of the operator whose hash that is. Hashes of
another version say nothing. What they stood for is found out once, when a cluster is taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from raykeeper.api import labels
from raykeeper.api.raycluster import RayClusterSpec
from raykeeper.operator.shared.spec_hash import spec_hash

LONGEST_COUNT: Final = 6
"""Digits of a number of worker groups."""


class Match(Enum):
    """What a cluster is to the present spec."""

    SAME = auto()
    APPENDED = auto()
    """The spec has more worker groups at its end, and is the same else: they can be added to the cluster."""
    DIFFERENT = auto()
    UNKNOWN = auto()
    """The marks are missing, or of another version."""


@dataclass(frozen=True)
class Marks:
    """What a cluster tells about the spec that it was made for."""

    hash: str
    groups: int
    version: str

    @classmethod
    def for_spec(cls, spec: RayClusterSpec, version: str) -> Marks:
        return cls(spec_hash(spec), len(spec.worker_group_specs), version)

    def annotations(self) -> dict[str, str]:
        return {
            labels.HASH_WITHOUT_REPLICAS: self.hash,
            labels.NUM_WORKER_GROUPS: str(self.groups),
            labels.KUBERAY_VERSION: self.version,
        }


def match(annotations: Mapping[str, str], goal: RayClusterSpec, version: str) -> Match:
    """How the cluster with these annotations compares with the spec that there should be."""
    stored, groups = annotations.get(labels.HASH_WITHOUT_REPLICAS), annotations.get(labels.NUM_WORKER_GROUPS, "")
    is_count = groups.isdecimal() and len(groups) <= LONGEST_COUNT
    if annotations.get(labels.KUBERAY_VERSION) != version or not stored or not is_count:
        return Match.UNKNOWN
    if stored == spec_hash(goal) and int(groups) == len(goal.worker_group_specs):
        return Match.SAME
    is_longer = int(groups) < len(goal.worker_group_specs)
    return Match.APPENDED if is_longer and stored == spec_hash(goal, int(groups)) else Match.DIFFERENT


def adopted_marks(cluster: RayClusterSpec, goal: RayClusterSpec, version: str, *, was_seen: bool) -> Marks:
    """The marks for a cluster that another version made.

    `was_seen`: that version had seen the present spec and found this cluster right for it. So it is, in whatever way
    the two versions write the same thing. Else the cluster's own spec decides, and a change made meanwhile is not lost.
    """
    return Marks.for_spec(goal if was_seen else cluster, version)

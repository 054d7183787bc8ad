"""What a session's tasks waited for, and what there was to have: out of its tables and of what was polled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.polledrows import polled_rows
from raykeeper.history.report.capacity import Capacity, capacity_of
from raykeeper.history.report.situation import UnmadeGroup, Waiting
from raykeeper.history.report.statements import GIVEN_RESOURCES, NODE_RESOURCES, WAITING

_WAITING_STATES = ("PENDING", "RESCHEDULING")


class _Stats(msgspec.Struct):
    end_to_end_creation_latency_us: int = 0


class _Bundle(msgspec.Struct):
    unit_resources: dict[str, float] = {}


class _Group(msgspec.Struct):
    placement_group_id: str
    state: str
    creator_job_id: str = ""
    bundles: list[_Bundle] = []
    stats: _Stats | None = None


async def read_capacity(asked: Asked) -> Capacity:
    nodes = await asked.rows(NODE_RESOURCES)
    given = await asked.rows(GIVEN_RESOURCES)
    return capacity_of([row["resources_total"] for row in nodes], [row["required_resources"] for row in given])


async def read_waiting(asked: Asked, job_id: str | None) -> tuple[Waiting, ...]:
    """What waited for a node when the cluster ended, the longest first."""
    return tuple(Waiting(**row) for row in await asked.rows(WAITING, {"job_id": job_id}))


def unmade_groups(asked: Asked) -> tuple[UnmadeGroup, ...]:
    """Placement groups that were never made, of those that the dashboard listed last."""
    return parse_unmade(polled_rows(asked.session, "placement_groups", ["placement_group_id"]) or [])


def parse_unmade(rows: Iterable[Mapping[str, Any]]) -> tuple[UnmadeGroup, ...]:
    """Of Ray's rows those that still wait, or were removed before they ever came to be."""
    groups = []
    for row in rows:
        try:
            group = msgspec.convert(row, _Group, strict=False)  # Ray writes large numbers as texts
        except msgspec.ValidationError:
            continue  # a shape that we do not know says nothing to us
        was_made = group.state not in _WAITING_STATES and (
            group.state != "REMOVED" or group.stats is None or bool(group.stats.end_to_end_creation_latency_us)
        )
        if not was_made:
            bundles = tuple(bundle.unit_resources for bundle in group.bundles)
            groups.append(UnmadeGroup(group.placement_group_id, group.creator_job_id, bundles))
    return tuple(groups)

"""The four kinds of Ray objects, and every name people call them by."""

from __future__ import annotations

from typing import Final

from raykeeper.api.crd.kinds import KINDS, Kind
from raykeeper.api.meta import JSON, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.raycronjob import RAY_CRON_JOBS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.api.rayservice import RAY_SERVICES

CLUSTERS: Final[Resource[JSON]] = RAY_CLUSTERS.read_as(dict)
JOBS: Final[Resource[JSON]] = RAY_JOBS.read_as(dict)
SERVICES: Final[Resource[JSON]] = RAY_SERVICES.read_as(dict)
CRON_JOBS: Final[Resource[JSON]] = RAY_CRON_JOBS.read_as(dict)
"""Read as plain JSON: scripts look at any field, also at those of newer versions."""

RAY_KINDS: Final = (CLUSTERS, JOBS, SERVICES, CRON_JOBS)
_BY_KIND: Final = {kind.resource.kind: kind for kind in KINDS}
_SHORT: Final = {"cluster": CLUSTERS, "job": JOBS, "service": SERVICES, "cronjob": CRON_JOBS}


def definition(kind: str) -> Kind | None:
    """What our types say about a kind such as `RayJob`."""
    return _BY_KIND.get(kind)


def resource_called(name: str) -> Resource[JSON] | None:
    """The kind for `RayJob`, `rayjob`, `rayjobs`, `rayjobs.ray.io`, `rayjobs.v1.ray.io` or `job`."""
    word = name.lower().removesuffix(".ray.io").removesuffix(".v1")
    for resource in RAY_KINDS:
        if word in (resource.plural, resource.kind.lower()):
            return resource
    return _SHORT.get(word.removesuffix("s") if word != "s" else word)

"""What the API server is and has, learned once at start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from raykeeper.api.meta import Resource
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.kube.client import Kube
from raykeeper.kube.discovery import Discovery
from raykeeper.kube.resources import ROUTES
from raykeeper.logs import Log

log = Log("raykeeper.operator")

CRD_SECONDS = 120.0  # manifests applied together arrive in any order; after this someone must act, as with KubeRay's
LOOK_SECONDS = 2.0
CERT_MANAGER_GROUP = "cert-manager.io"


class MissingKinds(RaykeeperError):
    """A CustomResourceDefinition that the operator cannot work without is not installed."""


@dataclass(frozen=True)
class Surroundings:
    """Facts that do not change while the operator runs."""

    kubernetes: tuple[int, int]
    """Version of the API server, such as (1, 36)."""
    is_openshift: bool
    """Whether OpenShift's Routes are served."""
    has_cert_manager: bool = False
    """Whether cert-manager's Certificates are served, which encryption between Ray nodes needs."""


async def survey(kube: Kube, clock: Clock) -> Surroundings:
    """Ask the API server what it is. Raises what `Kube` raises: without an answer there is nothing to start for."""
    discovery = Discovery(kube, clock)
    version = await discovery.server_version()
    groups = await discovery.groups()
    return Surroundings(
        version.number, is_openshift=ROUTES.group in groups, has_cert_manager=CERT_MANAGER_GROUP in groups
    )


async def wait_for_kinds(
    kube: Kube, clock: Clock, kinds: Iterable[Resource[Any]], patience_seconds: float = CRD_SECONDS
) -> None:
    """Return once all kinds are served. Says at once which are not, and raises `MissingKinds` when that lasts."""
    needed = tuple(kinds)
    deadline = clock.steady() + patience_seconds
    is_told = False
    while missing := await _missing(Discovery(kube, clock), needed):
        if clock.steady() >= deadline:
            raise MissingKinds(_cure(missing))
        if not is_told:
            log.warning("waiting for custom resource definitions", missing=missing)
        is_told = True
        await asyncio.sleep(LOOK_SECONDS)


async def _missing(discovery: Discovery, kinds: Iterable[Resource[Any]]) -> list[str]:
    return [str(kind) for kind in kinds if not await discovery.serves(kind)]


def _cure(missing: list[str]) -> str:
    names = ", ".join(missing)
    return f"the custom resource definitions {names} are not installed: `raykeeper crds | kubectl apply -f -` does it"

"""What the API server is and has, learned once at start."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from raykeeper.api.meta import Resource
from raykeeper.api.raycronjob import RAY_CRON_JOBS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.kube.client import Kube
from raykeeper.kube.discovery import Discovery
from raykeeper.kube.resources import GATEWAYS, HTTP_ROUTES, ROUTES
from raykeeper.kube.rights import may
from raykeeper.logs import Log

log = Log("raykeeper.operator")

CRD_SECONDS = 120.0  # manifests applied together arrive in any order; after this someone must act, as with KubeRay's
LOOK_SECONDS = 2.0
CERT_MANAGER_GROUP = "cert-manager.io"
GATEWAY_KINDS = (GATEWAYS, HTTP_ROUTES)


class MissingKinds(RaykeeperError):
    """A CustomResourceDefinition that the operator cannot work without is not installed."""


@dataclass(frozen=True)
class ApiServerFacts:
    """Facts that do not change while the operator runs."""

    kubernetes: tuple[int, int]
    """Version of the API server, such as (1, 36)."""
    is_openshift: bool
    """Whether OpenShift's Routes are served."""
    has_cert_manager: bool = False
    """Whether cert-manager's Certificates are served, which encryption between Ray nodes needs."""
    has_raycronjobs: bool = True
    """False where RayJobs are served without RayCronJobs, which KubeRay's CRDs before 1.6 lack."""
    has_gateway_api: bool = False
    """Whether Gateways and HTTPRoutes are served and we may follow them, which upgrades step by step need."""
    scheduler_kinds: frozenset[Resource[Any]] = frozenset()
    """Those kinds of the chosen batch scheduler that are served."""


async def survey(
    kube: Kube, clock: Clock, scheduler_kinds: Iterable[Resource[Any]] = (), namespaces: Collection[str] = ()
) -> ApiServerFacts:
    """Ask the API server what it is, and what of it we may follow in these namespaces (none means all).

    Raises what `Kube` raises: without an answer there is nothing to start for.
    """
    discovery = Discovery(kube, clock)
    version = await discovery.server_version()
    groups = await discovery.groups()
    return ApiServerFacts(
        version.number,
        is_openshift=ROUTES.group in groups,
        has_cert_manager=CERT_MANAGER_GROUP in groups,
        has_raycronjobs=await discovery.serves(RAY_CRON_JOBS) or not await discovery.serves(RAY_JOBS),
        has_gateway_api=await _can_follow(kube, discovery, GATEWAY_KINDS, namespaces),
        scheduler_kinds=frozenset([kind for kind in scheduler_kinds if await discovery.serves(kind)]),
    )


async def _can_follow(
    kube: Kube, discovery: Discovery, kinds: Iterable[Resource[Any]], namespaces: Collection[str]
) -> bool:
    """Whether the kinds are served, and we may follow them. A cache of what we may not list would never fill, and
    older roles of KubeRay do not allow it.
    """
    for kind in kinds:
        if not await discovery.serves(kind):
            return False
        for namespace in namespaces or ("",):
            if not (await may(kube, "list", kind, namespace) and await may(kube, "watch", kind, namespace)):
                return False
    return True


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

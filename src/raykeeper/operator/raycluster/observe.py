"""What is there of a RayCluster: every read is here, all from caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.names import gcs_storage_claim_name, redis_cleanup_job_name
from raykeeper.api.raycluster import RayCluster
from raykeeper.kube.informers.cache import Cache
from raykeeper.kube.resources import PERSISTENT_VOLUME_CLAIMS
from raykeeper.operator import kinds
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.raycluster.children.obsolete import Usage
from raykeeper.operator.raycluster.pod import Pod, parse_pod
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.watches import Informers, WatchedKind

CHILD_KINDS: Final[tuple[WatchedKind[Any], ...]] = (
    kinds.WATCHED_SERVICE_ACCOUNTS,
    kinds.WATCHED_ROLES,
    kinds.WATCHED_ROLE_BINDINGS,
    kinds.WATCHED_INGRESSES,
    kinds.WATCHED_ROUTES,
    kinds.WATCHED_SECRETS,
    kinds.WATCHED_HEAD_SERVICES,
    kinds.WATCHED_HEADLESS_SERVICES,
    kinds.WATCHED_SERVE_SERVICES,
    kinds.WATCHED_CLAIMS,
    *kinds.WATCHED_BY_SCHEDULERS,
)


@dataclass(frozen=True)
class Observed:
    """One cluster's children, as the caches have them."""

    pods: Sequence[Pod]
    children: Mapping[ChildKey, JSON]
    """Those that the cluster controls, and the claim under its GCS, which may be nobody's."""
    cleanup_job: Object | None
    gang: Sequence[JSON] = ()
    """What a batch scheduler has of the cluster: its own objects, and those of the RayJob that made it."""
    unsettled: tuple[str, ...] = ()
    """Groups of which the caches do not show all that we did to their pods."""

    @property
    def has_head(self) -> bool:
        return any(pod.is_head for pod in self.pods)

    @property
    def usage(self) -> Usage:
        """What running pods still need of the other children."""
        return Usage(bool(self.pods), any(pod.has_autoscaler for pod in self.pods))


class Observer:
    """Looks a cluster up in the caches."""

    def __init__(self, informers: Informers, api_server: ApiServerFacts) -> None:
        self._pods = informers.cache(kinds.WATCHED_PODS)
        self._jobs = informers.cache(kinds.WATCHED_JOBS)
        self._claims = informers.cache(kinds.WATCHED_CLAIMS)
        self._children: list[tuple[str, Cache[Any]]] = [
            (kind.resource.kind, informers.cache(kind)) for kind in CHILD_KINDS if kind.is_served(api_server)
        ]
        self._gangs = GangObserver(informers, api_server)

    def observe(self, cluster: RayCluster) -> Observed:
        """The children that the cluster controls. Pods of a namesake that is gone are among them only as orphans."""
        uid = cluster.metadata.uid
        job_name = redis_cleanup_job_name(cluster)
        jobs = (job for job in self._jobs.find(kinds.BY_OWNER, uid) if job.metadata.name == job_name)
        children = self._children_of(uid) | self._claim_of(cluster)
        return Observed(self._ray_pods(cluster), children, next(jobs, None), self._gangs.of_cluster(cluster))

    def _ray_pods(self, cluster: RayCluster) -> list[Pod]:
        found = self._pods.find(kinds.BY_CLUSTER, f"{cluster.metadata.namespace}/{cluster.metadata.name}")
        ours = (item for item in found if item.controller_uid == cluster.metadata.uid or _is_left_behind(cluster, item))
        pods = (parse_pod(item) for item in ours)
        return [pod for pod in pods if pod.labels.get(labels.NODE_TYPE) in (labels.HEAD, labels.WORKER)]

    def _children_of(self, uid: str) -> dict[ChildKey, JSON]:
        return {
            ChildKey(kind, item.metadata.name): to_json(item)
            for kind, cache in self._children
            for item in cache.find(kinds.BY_OWNER, uid)
        }

    def _claim_of(self, cluster: RayCluster) -> dict[ChildKey, JSON]:
        """The claim by its name: one that is to outlive the cluster has no owner, and one of an earlier cluster none
        yet.
        """
        name = gcs_storage_claim_name(cluster)
        found = self._claims.get(ObjectKey(cluster.metadata.namespace, name))
        return {} if found is None else {ChildKey(PERSISTENT_VOLUME_CLAIMS.kind, name): to_json(found)}


class GangObserver:
    """Looks up what a batch scheduler has, such as PodGroups."""

    def __init__(self, informers: Informers, api_server: ApiServerFacts) -> None:
        served = [kind for kind in kinds.WATCHED_BY_SCHEDULERS if kind.is_served(api_server)]
        self._caches = [(kind.resource.kind, informers.cache(kind)) for kind in served]

    def of_owner(self, uid: str) -> dict[ChildKey, JSON]:
        """Those that belong to the owner."""
        return {
            ChildKey(kind, item.metadata.name): to_json(item)
            for kind, cache in self._caches
            for item in cache.find(kinds.BY_OWNER, uid)
        }

    def of_cluster(self, cluster: RayCluster) -> list[JSON]:
        """Those of the cluster, and of whoever made it: with Volcano a RayJob and its cluster are one gang."""
        makers = [owner.uid for owner in cluster.metadata.owner_references if owner.controller]
        return [item for uid in (cluster.metadata.uid, *makers) for item in self.of_owner(uid).values()]


def _is_left_behind(cluster: RayCluster, pod: Object) -> bool:
    """Whether it is a pod of a deleted namesake that nobody owns any more (`--cascade=orphan`), in a group that is
    there again. Others may carry our labels for reasons of their own.
    """
    groups = {labels.HEAD_GROUP, *(group.group_name for group in cluster.spec.worker_group_specs)}
    marks = pod.metadata.labels
    is_ray_node = marks.get(labels.IS_RAY_NODE) == labels.YES
    return not pod.metadata.owner_references and is_ray_node and marks.get(labels.GROUP) in groups


def to_json(item: Object) -> JSON:
    """A cached object as JSON: its metadata, and every part that is kept as bytes."""
    body: JSON = {"metadata": msgspec.to_builtins(item.metadata)}
    for field in msgspec.structs.fields(type(item)):
        part = getattr(item, field.name)
        if isinstance(part, msgspec.Raw) and part:
            body[field.encode_name] = msgspec.json.decode(part)
    return body

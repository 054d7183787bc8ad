"""The end of a RayCluster: what it left in Redis is removed before the object may go."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from raykeeper.api import labels
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.errors import Unavailable
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.errors import AlreadyExists, ApiError, Conflict
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.kube.resources import JOBS, PODS
from raykeeper.operator.context import Context
from raykeeper.operator.raycluster.children.redis_cleanup import (
    deletion_timeout_seconds,
    desired_redis_cleanup_job,
    is_finished,
)
from raykeeper.operator.raycluster.observe import Observed
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.desired import desired_head_pod
from raykeeper.operator.shared.children.apply import Refusal
from raykeeper.operator.shared.features import gcs_backend
from raykeeper.operator.shared.finalizers import add_finalizer, remove_finalizer
from raykeeper.operator.shared.history import without_history
from raykeeper.operator.shared.owner import Owner

FINALIZER = labels.GCS_FT_REDIS_CLEANUP_FINALIZER
PODS_GO_SECONDS = 10.0  # watched anyway; this is for a watch that is late


class Deletion:
    """Puts the finalizer on, and takes it off when there is nothing left to clean."""

    def __init__(self, context: Context, recorder: EventRecorder, defaults: PodDefaults) -> None:
        self._context = context
        self._kube = context.kube
        self._recorder = recorder
        self._defaults = defaults

    async def prepare(self, cluster: RayCluster) -> Refusal | None:
        """Make sure that the object cannot go before Redis is clean. Before any pod that writes to Redis is made.

        Where that is refused, the refusal: no pod is made then, but those that should go, go. Raises `Conflict`.
        """
        if not self._cleans_redis(cluster):
            return None
        try:
            await add_finalizer(self._kube, RAY_CLUSTERS, cluster.metadata, FINALIZER)
        except Conflict:
            raise
        except (ApiError, Unavailable) as error:
            return error
        return None

    async def advance(self, cluster: RayCluster, observed: Observed) -> Requeue:
        """One step: pods go, then Redis is cleaned, then the finalizer goes. Kubernetes does the rest."""
        if FINALIZER not in cluster.metadata.finalizers:
            return Requeue.never()
        if not self._cleans_redis(cluster):
            return await self._release(cluster)
        if any(not pod.is_terminating for pod in observed.pods):
            ray_nodes = f"{labels.NODE_TYPE} in ({labels.HEAD},{labels.WORKER})"  # not the pods of the clean-up itself
            selector = f"{labels.CLUSTER}={cluster.metadata.name},{ray_nodes}"
            await self._kube.delete_collection(PODS, cluster.metadata.namespace, labels=selector)
        if self._is_overdue(cluster):
            note = "the clean-up of Redis took too long; the cluster goes without it"
            self._recorder.warning(Owner.of(cluster).ref(), "ForceDeletedStuckCluster", note, action="Cleanup")
            return await self._release(cluster)
        if observed.has_head:
            return Requeue.after(PODS_GO_SECONDS)  # the GCS must have stopped writing
        if observed.cleanup_job is None:
            return await self._start_job(cluster)
        if is_finished(msgspec.json.decode(observed.cleanup_job.status or b"{}")):
            return await self._release(cluster)
        return Requeue.after(PODS_GO_SECONDS)

    def _cleans_redis(self, cluster: RayCluster) -> bool:
        is_redis = gcs_backend(cluster.spec, cluster.metadata.annotations) == "redis"
        return is_redis and self._context.settings.raycluster.cleans_up_redis

    def _is_overdue(self, cluster: RayCluster) -> bool:
        since = datetime.fromisoformat(cluster.metadata.deletion_timestamp or "")
        return self._context.clock.now() - since >= timedelta(seconds=deletion_timeout_seconds(cluster))

    async def _start_job(self, cluster: RayCluster) -> Requeue:
        head = desired_head_pod(without_history(cluster), self._defaults, "clean")
        job = desired_redis_cleanup_job(cluster, head)
        try:
            await self._kube.create(JOBS, job, cluster.metadata.namespace)
        except AlreadyExists:
            return Requeue.after(PODS_GO_SECONDS)
        except (ApiError, Unavailable) as error:
            note = str(error)
            self._recorder.warning(Owner.of(cluster).ref(), "FailedToCreateRedisCleanupJob", note, action="Create")
            raise
        note = f"Created Job {job['metadata']['name']}"
        self._recorder.normal(Owner.of(cluster).ref(), "CreatedRedisCleanupJob", note, action="Create")
        return Requeue.after(PODS_GO_SECONDS)

    async def _release(self, cluster: RayCluster) -> Requeue:
        await remove_finalizer(self._kube, RAY_CLUSTERS, cluster.metadata, FINALIZER)
        return Requeue.never()

"""The operator with one small controller: it keeps a ConfigMap beside each RayCluster that notes how many pods it has.

As a real one it reads from shared caches, is woken by what it owns and by pods, writes under the fence, and tells in an
Event what it did.
"""

from __future__ import annotations

import os
import sys

from raykeeper.api.labels import CLUSTER
from raykeeper.api.meta import Object, ObjectKey, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.kube.controllers.controller import Reconcile
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.events.series import ObjectRef
from raykeeper.kube.informers.cache import by_controller
from raykeeper.operator.context import Context
from raykeeper.operator.controllers import ControllerRow
from raykeeper.operator.kinds import BY_CLUSTER, BY_OWNER, WATCHED_PODS, WATCHED_RAYCLUSTERS
from raykeeper.operator.main import run
from raykeeper.operator.watches import Watch, WatchedKind, controlled_by, itself, more_than_status

NAME = "noting-controller"
NOTES: Resource[Object] = Resource("", "v1", "configmaps", "ConfigMap", Object)
WATCHED_NOTES: WatchedKind[Object] = WatchedKind(NOTES, labels="note=yes", indexes={BY_OWNER: by_controller})


def new_reconcile(context: Context) -> Reconcile[ObjectKey]:
    clusters = context.informers.cache(WATCHED_RAYCLUSTERS)
    pods = context.informers.cache(WATCHED_PODS)
    notes = context.informers.cache(WATCHED_NOTES)
    recorder = context.recorder(NAME)

    async def reconcile(key: ObjectKey) -> Requeue:
        cluster = clusters.get(key)
        if cluster is None:
            return Requeue.never()
        uid = cluster.metadata.uid
        count = str(len(pods.find(BY_CLUSTER, str(key))))
        if not any(note.metadata.labels.get("pods") == count for note in notes.find(BY_OWNER, uid)):
            await context.kube.apply(NOTES, desired_note(cluster, count), field_manager=NAME, force=True)
            recorder.normal(ObjectRef("ray.io/v1", "RayCluster", *key, uid), "Noted", f"{count} pods")
        return Requeue.never()

    return reconcile


def desired_note(cluster: Object, count: str) -> dict[str, object]:
    name, namespace, uid = cluster.metadata.name, cluster.metadata.namespace, cluster.metadata.uid
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": uid, "controller": True}
    labels = {"note": "yes", "pods": count}
    metadata = {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def cluster_in_label(pod: Object) -> list[ObjectKey]:
    """Pods of the test have no owner: the garbage collector would remove them."""
    return [ObjectKey(pod.metadata.namespace, pod.metadata.labels[CLUSTER])]


NOTING = ControllerRow(
    name=NAME,
    reconciles=RAY_CLUSTERS,
    watches=(
        Watch(WATCHED_RAYCLUSTERS, itself, more_than_status),
        Watch(WATCHED_PODS, cluster_in_label),
        Watch(WATCHED_NOTES, controlled_by(RAY_CLUSTERS)),
    ),
    make=new_reconcile,
)

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], os.environ, rows=(NOTING,)))

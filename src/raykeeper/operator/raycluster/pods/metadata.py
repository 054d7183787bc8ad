"""Names, labels and annotations of Ray pods. Services, the autoscaler and other operators find pods by them."""

from __future__ import annotations

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.actions import Slot
from raykeeper.operator.raycluster.pods import fault_tolerance
from raykeeper.operator.raycluster.pods.collector import is_annotated
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.raycluster.pods.ray_start import overwrites_command
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared import rrsa
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.spec_hash import spec_hash


def head_metadata(node: RayNode, random_end: str) -> JSON:
    """The head's name is the user's, where the template has one, else the cluster's with a random end."""
    prefix = names.head_pod_prefix(node.cluster)
    annotations = fault_tolerance.head_annotations(node) | head_marks(node.cluster, node.defaults.operator_version)
    if node.defaults.settings.has_fixed_head_name:
        naming = {"name": prefix.removesuffix("-")}
    else:
        naming = {"name": node.template_metadata.get("name") or prefix + random_end, "generateName": prefix}
    return _metadata(node, naming, _serve_label(node, "false"), annotations)


def worker_metadata(node: RayNode, slot: Slot | None, random_end: str) -> JSON:
    """A worker's name shows its cluster and group; a name in the template would be the same for all."""
    prefix = names.worker_pod_prefix(node.cluster, node.group_name)
    naming = {"name": prefix + random_end, "generateName": prefix}
    return _metadata(node, naming, _serve_label(node, "true") | _slot_labels(slot), {})


def head_marks(cluster: RayCluster, operator_version: str) -> dict[str, str]:
    """The annotations by which a head pod tells which spec it was made for, and whose hash that is."""
    return {labels.RECREATE_HASH: spec_hash(cluster.spec), labels.KUBERAY_VERSION: operator_version}


def _metadata(node: RayNode, naming: JSON, own_labels: dict[str, str], own_annotations: dict[str, str]) -> JSON:
    given = {name: value for name, value in node.template_metadata.items() if name not in ("name", "generateName")}
    settings = node.defaults.settings
    history = node.defaults.history.settings if is_annotated(node) else HistorySettings()
    return given | {
        **naming,
        "namespace": node.cluster.metadata.namespace,
        "labels": {**settings.default_labels, **rrsa.pod_labels(history), **_labels(node), **own_labels},
        "annotations": {
            **settings.default_annotations,
            **rrsa.pod_annotations(history),
            **_annotations(node),
            **own_annotations,
        },
        "ownerReferences": [Owner.of(node.cluster).reference()],
    }


def _labels(node: RayNode) -> dict[str, str]:
    """Users may override what only people read, but not what the pods are found by."""
    ours = {
        labels.IS_RAY_NODE: labels.YES,
        labels.IDENTIFIER: names.identifier(node.cluster, node.node_type),
        labels.APP_NAME: labels.APP_NAME_KUBERAY,
        labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR,
    }
    fixed = {
        labels.CLUSTER: node.cluster.metadata.name,
        labels.NODE_TYPE: node.node_type,
        labels.GROUP: node.group_name,
    }
    return {**ours, **(node.template_metadata.get("labels") or {}), **node.group.labels, **fixed}


def _annotations(node: RayNode) -> dict[str, str]:
    overwrites = {labels.OVERWRITE_CONTAINER_CMD: "true"} if overwrites_command(node) else {}
    return {**(node.template_metadata.get("annotations") or {}), **overwrites}


def _serve_label(node: RayNode, value: str) -> dict[str, str]:
    """Whether a RayService sends requests here; to the head only once its proxy answers."""
    return {labels.SERVE: value} if node.is_for_service else {}


def _slot_labels(slot: Slot | None) -> dict[str, str]:
    if slot is None:
        return {}
    index = {labels.REPLICA_INDEX: str(slot.index)}
    if slot.replica is None:
        return index
    return index | {labels.REPLICA_NAME: slot.replica, labels.REPLICA_HOST_INDEX: str(slot.host)}

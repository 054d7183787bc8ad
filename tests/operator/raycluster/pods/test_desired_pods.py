"""Pods are built from templates that belong to somebody else."""

from __future__ import annotations

import copy

from rayclusters.manifests import a_cluster
from rayclusters.ray_pods import RANDOM_END, head_pod, pod_defaults, ray, worker_pod
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.desired import desired_head_pod, desired_worker_pod
from raykeeper.operator.settings import PodSettings

EVERYTHING = (
    a_cluster()
    .autoscaled(env=[{"name": "A", "value": "1"}], resources={"limits": {"cpu": 1}})
    .with_spec(
        authOptions={"mode": "token", "enableK8sTokenAuth": True},
        historyServerOptions={"collectorOptions": {"image": "c", "env": [{"name": "B", "value": "2"}]}},
        gcsFaultToleranceOptions={"redisAddress": "r", "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "s"}}}},
    )
    .with_head_container(env=[{"name": "C"}], ports=[{"containerPort": 1}], volumeMounts=[{"mountPath": "/x"}])
    .with_head_pod(initContainers=[{"name": "i", "env": [{"name": "D"}]}], volumes=[{"name": "v"}])
    .with_workers(
        container={"env": [{"name": "C"}], "volumeMounts": [{"mountPath": "/x"}], "securityContext": {"runAsUser": 1}},
        pod={"initContainers": [{"name": "i", "env": [{"name": "D"}]}], "volumes": [{"name": "v"}]},
    )
)
SIDECAR: JSON = {"name": "side", "image": "s", "env": [{"name": "E"}]}


def spoil(value: object) -> None:
    """Change every list and object within."""
    if isinstance(value, dict):
        for part in value.values():
            spoil(part)
        value["spoiled"] = True
    elif isinstance(value, list):
        for part in value:
            spoil(part)
        value.append("spoiled")


def test_a_pod_shares_nothing_with_what_it_was_built_from() -> None:
    cluster = EVERYTHING.build()
    defaults = PodDefaults("v", PodSettings(head_sidecars=(SIDECAR,), worker_sidecars=(SIDECAR,)))
    group = cluster.spec.worker_group_specs[0]
    before = copy.deepcopy((cluster, defaults))

    def pods() -> list[JSON]:
        workers = desired_worker_pod(cluster, group, defaults, None, RANDOM_END)
        return [desired_head_pod(cluster, defaults, RANDOM_END), workers]

    first = copy.deepcopy(pods())
    for pod in pods():
        spoil(pod)
    assert (cluster, defaults) == before
    assert pods() == first


def test_unknown_fields_of_the_template_survive() -> None:
    cluster = a_cluster().with_head_pod(newField={"a": 1}, hostNetwork=True).with_head_container(newField=[1])
    pod = head_pod(cluster)
    assert pod["spec"]["newField"] == {"a": 1}
    assert pod["spec"]["hostNetwork"] is True
    assert ray(pod)["newField"] == [1]


def test_a_pod_is_a_whole_object() -> None:
    for pod in (head_pod(a_cluster()), worker_pod(a_cluster(), pod_defaults())):
        assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")


def test_fields_that_the_template_leaves_null_count_as_missing() -> None:
    nothing = {"env": None, "ports": None, "volumeMounts": None, "resources": None, "command": None, "args": None}
    cluster = a_cluster().with_head_container(**nothing).with_head_pod(volumes=None, initContainers=None)
    assert ray(head_pod(cluster))["command"] == ["/bin/bash", "-c", "--"]

"""RayClusters whose children stand in golden files, whole, as the real API server keeps them.

Every field of the spec that the operator handles is in one of them, and every value of those with few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayclusters.children_cases import CASES, OWN_HEAD_SERVICE, with_ingress, with_rocksdb
from rayclusters.golden_pods import (
    BARE,
    BY_OPERATOR,
    OLD_RAY,
    OWN_COMMAND,
    PLAIN,
    SIZED,
    STORAGE,
    TPU_HOST,
    collected,
    customised,
    made_for,
    with_redis,
)
from rayclusters.histories import IN_S3, IN_S3_BY_ROLE, ON_ACK
from rayclusters.manifests import ClusterBuilder
from rayclusters.sample_shapes import SAMPLES
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.raycluster.children.desired import ChildSettings
from raykeeper.operator.settings import HistorySettings, OperatorSettings, RayClusterSettings
from raykeeper.operator.shared.history import History

Clusters = Mapping[str, ClusterBuilder]

WORKING = PLAIN.with_workers(replicas=1)
SECRET_KEY = {"secretKeyRef": {"name": "redis", "key": "user"}}
GPU: JSON = {"resources": {"limits": {"nvidia.com/gpu": 2, "cpu": 8, "memory": "64Gi"}}}
CERTIFICATES: JSON = {"volumes": [{"name": "certificates", "secret": {"secretName": "ca"}}]}


def workers(**fields: Any) -> ClusterBuilder:
    return PLAIN.with_workers(**{"replicas": 1} | fields)


def with_a_worker_each(cluster: ClusterBuilder) -> ClusterBuilder:
    """The cluster with one replica in each of its groups."""
    groups = [group | {"replicas": 1} for group in cluster.manifest["spec"]["workerGroupSpecs"]]
    return cluster.with_spec(workerGroupSpecs=groups)


def autoscaled(**options: Any) -> ClusterBuilder:
    return WORKING.autoscaled(**options)


def with_token(**options: Any) -> ClusterBuilder:
    return autoscaled().with_spec(authOptions={"mode": "token"} | options)


def redis(**options: Any) -> ClusterBuilder:
    return WORKING.with_spec(gcsFaultToleranceOptions={"redisAddress": "redis:6379"} | options)


def _children_cases(*, has_address: bool = False, history: HistorySettings | None = None) -> Clusters:
    """The clusters of the golden files about children, but for OpenShift, which the bed is not."""
    wanted = ChildSettings(headless_head_service=not has_address, history=History(history or HistorySettings()))
    return {name: builder for name, (builder, settings) in CASES.items() if settings == wanted}


HEADS: Clusters = {
    "working": WORKING,
    "old-ray": OLD_RAY.with_workers(replicas=1),
    "ray-of-no-version": WORKING.with_spec(rayVersion="nightly"),
    "head-with-parameters": WORKING.with_head(
        rayStartParams={"port": "6380", "dashboard-port": "9000", "num-cpus": "0", "include-dashboard": "false"}
    ),
    "head-without-shared-memory": PLAIN.with_head(rayStartParams={"plasma-directory": "/fast"}),
    "head-with-resources": PLAIN.with_head(resources={"CPU": "0", "memory": "1Gi", "GPU": "1", "Special": "2"}),
    "head-with-labels": PLAIN.with_head(labels={"ray.io/market-type": "on-demand", "ray.io/zone": "a"}),
    "head-sized": PLAIN.with_head_container(**SIZED),
    "head-with-own-command": PLAIN.annotated({labels.OVERWRITE_CONTAINER_CMD: "true"}).with_head_container(
        **OWN_COMMAND
    ),
    "head-service-cluster-ip": PLAIN.with_head(serviceType="ClusterIP"),
    "head-service-load-balancer": PLAIN.with_head(serviceType="LoadBalancer").with_spec(
        headServiceAnnotations={"service.example.com/internal": "true"}
    ),
    "head-service-of-the-user-with-workers": WORKING.with_head(headService=OWN_HEAD_SERVICE),
    "ingress-for-the-implementation": with_ingress(path="/ray/*", pathType="ImplementationSpecific"),
    "ingress-for-a-prefix": with_ingress(path="/ray", pathType="Prefix"),
    "customised": with_a_worker_each(customised()),
    "customised-and-autoscaled": with_a_worker_each(customised()).autoscaled(),
    "customised-and-collected": collected(with_a_worker_each(customised())),
}

WORKERS: Clusters = {
    "no-workers": PLAIN.with_workers(),
    "workers-raised-to-the-minimum": PLAIN.with_workers(replicas=0, minReplicas=2),
    "workers-held-to-the-maximum": PLAIN.with_workers(replicas=9, maxReplicas=1),
    "two-groups": workers(group_name="cpu").with_workers("gpu", replicas=1, container=GPU),
    "workers-with-parameters": workers(
        rayStartParams={"resources": '"{\\"Custom\\": 2}"', "log-color": "false", "no-redirect-output": "true"}
    ),
    "workers-with-resources": workers(resources={"CPU": "2", "Custom": "0.5"}),
    "workers-with-labels": workers(labels={"ray.io/market-type": "spot"}),
    "workers-sized": workers(container=SIZED),
    "workers-multi-host": PLAIN.with_workers(
        "tpu",
        replicas=2,
        numOfHosts=2,
        container=TPU_HOST,
        pod={"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]},
    ),
    "workers-suspended": workers(group_name="off", suspend=True).with_workers("on", replicas=1, suspend=False),
    "workers-to-delete-that-are-gone": workers(scaleStrategy={"workersToDelete": ["a-pod-of-the-past"]}),
    "workers-with-priority": workers(priority=5, idleTimeoutSeconds=120).autoscaled(version="v2"),
}

AUTOSCALING: Clusters = {
    "autoscaled-with-workers": autoscaled(),
    "autoscaled-v1": autoscaled(version="v1", upscalingMode="Default", idleTimeoutSeconds=30),
    "autoscaled-v2": autoscaled(version="v2", upscalingMode="Aggressive"),
    "autoscaled-with-options": autoscaled(
        upscalingMode="Conservative",
        image="my/autoscaler:1",
        imagePullPolicy="Always",
        env=[{"name": "X", "value": "1"}],
        envFrom=[{"secretRef": {"name": "keys"}}],
        volumeMounts=[{"name": "certificates", "mountPath": "/certs"}],
        securityContext={"runAsUser": 5},
        resources={"limits": {"cpu": 1, "memory": "1Gi"}},
        command=["/bin/bash", "-c", "--"],
        args=["echo starting && $(KUBERAY_GEN_AUTOSCALER_START_CMD)"],
    ).with_head_pod(**CERTIFICATES),
    "autoscaling-turned-off": WORKING.with_spec(enableInTreeAutoscaling=False, autoscalerOptions={"version": "v2"}),
}

FAULT_TOLERANCE: Clusters = {
    "redis": with_redis().with_workers(replicas=1),
    "redis-named": redis(backend="redis", externalStorageNamespace="mine"),
    "redis-user-from-a-secret": redis(redisUsername={"valueFrom": SECRET_KEY}, redisPassword={"value": "hidden"}),
    "redis-by-annotation": WORKING.annotated({labels.FT_ENABLED: "true", labels.EXTERNAL_STORAGE_NAMESPACE: "mine"})
    .with_head(rayStartParams={"redis-password": "secret"})
    .with_head_env("RAY_REDIS_ADDRESS", "redis:6379"),
    "rocksdb-with-workers": with_rocksdb(deletionPolicy="DeleteWithCluster").with_workers(replicas=1),
}

ACCESS: Clusters = {
    "token": with_token(),
    "token-of-the-user": with_token(secretName="mine"),
    "token-of-kubernetes": with_token(enableK8sTokenAuth=True),
    "token-disabled": with_token(mode="disabled"),
    "token-without-mode": WORKING.with_spec(authOptions={}),
}

HISTORY: Clusters = {
    "collected": collected(WORKING),
    "collected-and-autoscaled": collected(autoscaled()),
    "collected-with-token": collected(with_token()),
    "collected-with-options": WORKING.with_spec(
        historyServerOptions={
            "collectorOptions": {
                "image": "raykeeper:1.2.3",
                "imagePullPolicy": "Always",
                "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
                "env": STORAGE,
            }
        }
    ),
    "collected-for-a-rayjob": collected(made_for("RayJob").with_workers(replicas=1)),
}

LIVES: Clusters = {
    "suspended": WORKING.with_spec(suspend=True),
    "not-suspended": WORKING.with_spec(suspend=False),
    "managed-by-name": WORKING.with_spec(managedBy="ray.io/kuberay-operator"),
    "managed-by-another": WORKING.with_spec(managedBy="kueue.x-k8s.io/multikueue"),
    "upgraded-by-recreation": WORKING.with_spec(upgradeStrategy={"type": "Recreate"}),
    "upgraded-by-nobody": WORKING.with_spec(upgradeStrategy={"type": "None"}),
    "made-for-a-rayjob": made_for("RayJob").with_workers(replicas=1),
    "made-for-a-rayservice": made_for("RayService").with_workers(replicas=1),
}

ALPHA = FeatureGates({Gate.HISTORY_SERVER: True, Gate.EMBEDDED_GCS_STORAGE: True})
NO_INDEXES = FeatureGates({Gate.MULTI_HOST_INDEXING: False})

OPERATORS: Mapping[str, tuple[OperatorSettings, Clusters]] = {
    "as it comes": (
        OperatorSettings(gates=ALPHA),
        {
            **_children_cases(),
            **HEADS,
            **WORKERS,
            **AUTOSCALING,
            **FAULT_TOLERANCE,
            **ACCESS,
            **HISTORY,
            **LIVES,
            **SAMPLES,
        },
    ),
    "with addresses for heads": (
        OperatorSettings(raycluster=RayClusterSettings(head_service_has_ip=True)),
        _children_cases(has_address=True),
    ),
    "with history on Alibaba Cloud": (OperatorSettings(history=ON_ACK), _children_cases(history=ON_ACK)),
    "with history in S3": (OperatorSettings(history=IN_S3), _children_cases(history=IN_S3)),
    "with history in S3 by role": (OperatorSettings(history=IN_S3_BY_ROLE), _children_cases(history=IN_S3_BY_ROLE)),
    "with defaults for pods": (
        OperatorSettings(pods=BY_OPERATOR.settings),
        {"pods-by-operator": autoscaled()},
    ),
    "without probes and init containers": (
        OperatorSettings(pods=BARE.settings),
        {"pods-bare": WORKING},
    ),
    "without indexes of replicas": (
        OperatorSettings(gates=NO_INDEXES),
        {"workers-without-index": PLAIN.with_workers("tpu", replicas=1, numOfHosts=2)},
    ),
}
"""How an operator is set, and the clusters that it works on. Each case of children is worked on as it asks for."""

WHOLE_CLUSTERS: Clusters = {name: builder for _, clusters in OPERATORS.values() for name, builder in clusters.items()}


def whole_cluster(name: str, namespace: str) -> JSON:
    """A case as a manifest; its names are its own, so that all cases may be in one namespace."""
    own_name = WHOLE_CLUSTERS[name].manifest["metadata"]["name"]
    manifest = WHOLE_CLUSTERS[name].named(name if own_name == "rc" else own_name, namespace).manifest
    head_service = manifest["spec"]["headGroupSpec"].get("headService", {})
    if "name" in head_service.get("metadata", {}):
        head_service["metadata"]["name"] = f"{name}-mine"
    return manifest

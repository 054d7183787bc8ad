"""The clusters whose pods stand in golden files, each for one thing that pods differ in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayclusters.histories import IN_FOLDER, IN_S3, ON_ACK, WITH_PROVIDER, remembered, with_history
from rayclusters.manifests import ClusterBuilder, a_cluster
from rayclusters.ray_pods import head_pod, pod_defaults, worker_pod
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.actions import Slot

PLAIN = a_cluster().with_spec(rayVersion="2.60.0")
OLD_RAY = a_cluster().with_spec(rayVersion="2.46.0")
SIZED = {"resources": {"limits": {"cpu": "1500m", "memory": "4Gi"}, "requests": {"cpu": 1}}}
ENV_OF_USER = [{"name": "MINE", "value": "1"}, {"name": "RAY_ADDRESS", "value": "elsewhere:6379"}]
STORAGE = [{"name": "STORAGE_BACKEND", "value": "s3"}, {"name": "S3_REGION", "value": "eu-1"}]
TPU_HOST: JSON = {
    "resources": {"limits": {"google.com/tpu": 4, "cpu": 8}},
    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
}


def made_for(kind: str) -> ClusterBuilder:
    return PLAIN.labelled({labels.ORIGINATED_FROM_CRD: kind, labels.ORIGINATED_FROM_CR_NAME: "mine"})


def collected(cluster: ClusterBuilder) -> ClusterBuilder:
    options = {"image": "raykeeper:1.2.3", "env": STORAGE}
    return cluster.with_spec(historyServerOptions={"collectorOptions": options})


def with_redis() -> ClusterBuilder:
    return PLAIN.with_spec(
        gcsFaultToleranceOptions={
            "redisAddress": "redis:6379",
            "redisUsername": {"value": "ray"},
            "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
        }
    )


def customised() -> ClusterBuilder:
    """A user who sets whatever can be set in a template."""
    template = {
        "metadata": {
            "labels": {"team": "ml", "app.kubernetes.io/name": "mine"},
            "annotations": {"note": "keep"},
            "finalizers": ["example.com/wait"],
        },
        "spec": {
            "serviceAccountName": "mine",
            "nodeSelector": {"zone": "a"},
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 5,
            "initContainers": [{"name": "prepare", "image": "busybox"}],
            "containers": [
                {
                    "name": "ray",
                    "image": "my/ray:1",
                    "imagePullPolicy": "Always",
                    "command": ["echo"],
                    "args": ["hello"],
                    "env": ENV_OF_USER,
                    "envFrom": [{"configMapRef": {"name": "settings"}}],
                    "ports": [{"name": "metrics", "containerPort": 9090}, {"name": "serve", "containerPort": 8001}],
                    "securityContext": {"runAsUser": 1000},
                    "livenessProbe": {"exec": {"command": ["true"]}},
                    "volumeMounts": [{"name": "scratch", "mountPath": "/tmp/ray"}],
                },
                {"name": "side", "image": "side:1"},
            ],
            "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "10Gi"}}],
        },
    }
    group: dict[str, Any] = {
        "template": template,
        "labels": {"ray.io/market-type": "spot"},
        "resources": {"CPU": "2", "Custom": "0.5"},
    }
    return PLAIN.with_head(**group, rayStartParams={"port": "6380", "dashboard-port": "9000"}).with_workers(**group)


BY_OPERATOR = pod_defaults(
    head_sidecars=({"name": "head-side", "image": "side:2"},),
    worker_sidecars=({"name": "worker-side", "image": "side:2"},),
    default_env=({"name": "HTTP_PROXY", "value": "http://proxy:3128"},),
    default_labels={"team": "platform"},
    default_annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    uses_login_shell=True,
    has_fixed_head_name=True,
    cluster_domain="example.internal",
)
BARE = pod_defaults(injects_init_container=False, injects_probes=False)
NO_NATIVE_SIDECARS = pod_defaults(native_sidecars=False)
OWN_COMMAND = {"command": ["/bin/sh", "-c"], "args": ["$KUBERAY_GEN_RAY_START_CMD"]}

GOLDEN_PODS: Mapping[str, JSON] = {
    "head": head_pod(PLAIN.with_head_container(**SIZED)),
    "worker": worker_pod(PLAIN.with_workers(container=SIZED)),
    "head-of-old-ray": head_pod(OLD_RAY),
    "worker-of-old-ray": worker_pod(OLD_RAY),
    "head-autoscaled": head_pod(PLAIN.autoscaled()),
    "head-autoscaled-v2-with-options": head_pod(
        PLAIN.autoscaled(
            version="v2",
            image="my/autoscaler:1",
            imagePullPolicy="Always",
            env=[{"name": "X", "value": "1"}],
            envFrom=[{"secretRef": {"name": "keys"}}],
            securityContext={"runAsUser": 5},
            resources={"limits": {"cpu": 1, "memory": "1Gi"}},
            command=["/bin/bash", "-c", "--"],
            args=["echo starting && $(KUBERAY_GEN_AUTOSCALER_START_CMD)"],
        )
    ),
    "worker-autoscaled-v2": worker_pod(PLAIN.autoscaled(version="v2")),
    "head-with-token": head_pod(PLAIN.autoscaled().with_spec(authOptions={"mode": "token"})),
    "worker-with-token": worker_pod(PLAIN.with_spec(authOptions={"mode": "token", "secretName": "mine"})),
    "head-with-kubernetes-token": head_pod(
        PLAIN.autoscaled().with_spec(authOptions={"mode": "token", "enableK8sTokenAuth": True})
    ),
    "worker-with-kubernetes-token": worker_pod(
        PLAIN.with_spec(authOptions={"mode": "token", "enableK8sTokenAuth": True})
    ),
    "head-with-redis": head_pod(with_redis()),
    "worker-with-redis": worker_pod(with_redis()),
    "head-with-redis-by-annotation": head_pod(
        PLAIN.annotated({labels.FT_ENABLED: "true", labels.EXTERNAL_STORAGE_NAMESPACE: "mine"})
        .with_head(rayStartParams={"redis-password": "secret"})
        .with_head_env("RAY_REDIS_ADDRESS", "redis:6379")
    ),
    "head-with-rocksdb": head_pod(
        PLAIN.with_spec(gcsFaultToleranceOptions={"backend": "rocksdb", "storage": {"subPath": "gcs"}})
    ),
    "head-with-collector": head_pod(collected(PLAIN.autoscaled())),
    "worker-with-collector": worker_pod(collected(made_for("RayJob"))),
    "worker-with-plain-collector": worker_pod(collected(PLAIN), NO_NATIVE_SIDECARS),
    "head-with-history": head_pod(remembered(PLAIN.autoscaled()), with_history(pod_defaults(), ON_ACK)),
    "head-with-history-and-a-hook": head_pod(
        remembered(PLAIN.with_head_container(lifecycle={"postStart": {"exec": {"command": ["bash", "-c", "mine"]}}})),
        with_history(pod_defaults(), WITH_PROVIDER),
    ),
    "worker-with-history": worker_pod(remembered(made_for("RayJob")), with_history(pod_defaults(), IN_S3)),
    "worker-with-history-in-a-folder": worker_pod(
        remembered(customised()), with_history(NO_NATIVE_SIDECARS, IN_FOLDER)
    ),
    "head-of-rayjob": head_pod(made_for("RayJob")),
    "head-of-rayservice": head_pod(made_for("RayService")),
    "worker-of-rayservice": worker_pod(made_for("RayService")),
    "worker-multi-host": worker_pod(
        PLAIN.with_workers(
            "tpu",
            numOfHosts=4,
            container=TPU_HOST,
            pod={"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]},
        ),
        slot=Slot(2, "tpu-k5z8w", 3),
    ),
    "worker-without-index": worker_pod(PLAIN, slot=None),
    "worker-with-gpus": worker_pod(
        PLAIN.with_workers(
            rayStartParams={"resources": '"{\\"Custom\\": 2}"', "log-color": "false", "no-redirect-output": "true"},
            container={"resources": {"limits": {"nvidia.com/gpu": 2, "cpu": 8, "memory": "64Gi"}}},
        )
    ),
    "head-with-own-command": head_pod(
        PLAIN.annotated({labels.OVERWRITE_CONTAINER_CMD: "true"}).with_head_container(**OWN_COMMAND)
    ),
    "head-customised": head_pod(customised().autoscaled()),
    "worker-customised": worker_pod(collected(customised())),
    "head-by-operator": head_pod(PLAIN.autoscaled(), BY_OPERATOR),
    "worker-by-operator": worker_pod(PLAIN, BY_OPERATOR),
    "worker-bare": worker_pod(PLAIN, BARE),
}

"""Ray worker pods as an operator makes them: about 7.7 KB each once the API server has added its part."""

from __future__ import annotations

from raykeeper.api.meta import JSON

PODS_PER_CLUSTER = 10
LABEL = "bench"


def ray_pod(index: int) -> JSON:
    """One worker pod. No scheduler takes it, so what is measured is the pod and not its way to a node."""
    cluster = f"cluster-{index // PODS_PER_CLUSTER:04}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{cluster}-small-worker-{index:05}",
            "labels": _labels(cluster),
            "annotations": {"ray.io/ft-enabled": "false", "ray.io/overwrite-container-cmd": "false"},
            "ownerReferences": [_owner(cluster)],
        },
        "spec": {
            "schedulerName": "nobody",
            "restartPolicy": "Never",
            "initContainers": [_wait_container(cluster)],
            "containers": [_ray_container(cluster)],
            "volumes": [
                {"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                {"name": "ray-logs", "emptyDir": {}},
                {"name": "code", "configMap": {"name": f"{cluster}-code", "optional": True}},
            ],
        },
    }


def _labels(cluster: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/created-by": "kuberay-operator",
        "app.kubernetes.io/name": "kuberay",
        LABEL: "pods",
        "ray.io/cluster": cluster,
        "ray.io/cluster-dashboard": f"{cluster}-dashboard",
        "ray.io/group": "small-group",
        "ray.io/identifier": f"{cluster}-worker",
        "ray.io/is-ray-node": "yes",
        "ray.io/node-type": "worker",
    }


def _owner(cluster: str) -> JSON:
    uid = f"00000000-0000-4000-8000-{int(cluster.rpartition('-')[2]):012}"
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": cluster,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _env(cluster: str) -> list[JSON]:
    plain = {
        "FQ_RAY_IP": f"{cluster}-head-svc.default.svc.cluster.local",
        "RAY_IP": f"{cluster}-head-svc",
        "RAY_ADDRESS": f"{cluster}-head-svc.default.svc.cluster.local:6379",
        "RAY_PORT": "6379",
        "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE": "1",
        "RAY_USAGE_STATS_KUBERAY_IN_USE": "1",
        "RAY_USAGE_STATS_EXTRA_TAGS": "kuberay_version=v1.7.0;kuberay_crd=RayCluster",
        "RAY_timeout_ms_task_wait_for_death_info": "0",
    }
    from_fields = {"RAY_CLUSTER_NAME": "metadata.labels['ray.io/cluster']", "RAY_CLOUD_INSTANCE_ID": "metadata.name"}
    return [{"name": name, "value": value} for name, value in plain.items()] + [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in from_fields.items()
    ]


def _probe(seconds: int) -> JSON:
    check = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
    return {
        "exec": {"command": ["bash", "-c", check]},
        "initialDelaySeconds": seconds,
        "timeoutSeconds": 2,
        "periodSeconds": 5,
        "failureThreshold": 120,
    }


def _wait_container(cluster: str) -> JSON:
    wait = f"until ray health-check --address {cluster}-head-svc:6379 > /dev/null 2>&1; do sleep 5; done"
    return {
        "name": "wait-gcs-ready",
        "image": "rayproject/ray:2.60.0",
        "command": ["bash", "-c", wait],
    }


def _ray_container(cluster: str) -> JSON:
    start = (
        f"ulimit -n 65536; ray start --address={cluster}-head-svc:6379 --metrics-export-port=8080 --block --num-cpus=4"
    )
    return {
        "name": "ray-worker",
        "image": "rayproject/ray:2.60.0",
        "command": ["/bin/bash", "-c", "--"],
        "args": [start],
        "env": _env(cluster),
        "ports": [{"name": "metrics", "containerPort": 8080}],
        "livenessProbe": _probe(30),
        "readinessProbe": _probe(10),
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}},
        "resources": {"limits": {"cpu": "4", "memory": "16Gi"}, "requests": {"cpu": "4", "memory": "16Gi"}},
        "volumeMounts": [
            {"name": "shared-mem", "mountPath": "/dev/shm"},
            {"name": "ray-logs", "mountPath": "/tmp/ray"},
            {"name": "code", "mountPath": "/home/ray/code"},
        ],
    }

"""RayClusters of the shapes that KubeRay's users start from: a command of their own, certificates, log shippers,
proxies beside Ray, sandboxes, dashboards with more ports, profilers, TPU slices, empty lists that editors leave behind.
"""

from __future__ import annotations

from typing import Final

from rayclusters.golden_pods import PLAIN
from rayclusters.manifests import RAY_IMAGE, ClusterBuilder
from raykeeper.api import labels
from raykeeper.api.meta import JSON

SIZE: Final[JSON] = {"limits": {"cpu": "1", "memory": "2G"}, "requests": {"cpu": "500m", "memory": "2G"}}
PORTS: Final = [
    {"containerPort": 6379, "name": "gcs-server"},
    {"containerPort": 8265, "name": "dashboard"},
    {"containerPort": 10001, "name": "client"},
    {"containerPort": 44217, "name": "as-metrics"},
    {"containerPort": 44227, "name": "dash-metrics"},
]
CERTIFICATES: Final[JSON] = {"name": "ca-tls", "mountPath": "/etc/ca/tls", "readOnly": True}
RAY_CERTIFICATE: Final[JSON] = {"name": "ray-tls", "mountPath": "/etc/ray/tls"}
MAKE_CERTIFICATE: Final[JSON] = {
    "name": "ray-certificate",
    "image": RAY_IMAGE,
    "command": ["/bin/sh", "-c", "cp -R /etc/ca/tls /etc/ray && /etc/gen/tls/gencert.sh"],
    "volumeMounts": [CERTIFICATES, RAY_CERTIFICATE],
    "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
}
ENCRYPTED: Final[JSON] = {
    "env": [
        {"name": "RAY_USE_TLS", "value": "1"},
        {"name": "RAY_TLS_SERVER_CERT", "value": "/etc/ray/tls/tls.crt"},
        {"name": "RAY_TLS_SERVER_KEY", "value": "/etc/ray/tls/tls.key"},
        {"name": "RAY_TLS_CA_CERT", "value": "/etc/ca/tls/ca.crt"},
    ],
    "volumeMounts": [CERTIFICATES, RAY_CERTIFICATE],
    "resources": SIZE,
}
CERTIFICATE_POD: Final[JSON] = {
    "initContainers": [MAKE_CERTIFICATE],
    "volumes": [{"name": "ca-tls", "secret": {"secretName": "ca-tls"}}, {"name": "ray-tls", "emptyDir": {}}],
}
SHIPPER: Final[JSON] = {
    "name": "fluentbit",
    "image": "fluent/fluent-bit:3.2.2",
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "100m", "memory": "128Mi"}},
    "volumeMounts": [{"mountPath": "/tmp/ray", "name": "ray-logs"}],
}
LOGS: Final[JSON] = {"volumes": [{"name": "ray-logs", "emptyDir": {}}]}
SANDBOXED: Final[JSON] = {
    "lifecycle": {"postStart": {"exec": {"command": ["/bin/sh", "-c", "/install/runsc.sh >/tmp/runsc.log 2>&1"]}}},
    "securityContext": {
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
        "capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN"]},
    },
    "resources": SIZE,
}
TPU_SLICE: Final[JSON] = {
    "nodeSelector": {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice",
        "cloud.google.com/gke-tpu-topology": "2x2x2",
    }
}


def _beside_ray(builder: ClusterBuilder, *sidecars: JSON, **ray: object) -> ClusterBuilder:
    """A head pod with containers beside Ray's."""
    containers = [{"name": "ray-head", "image": RAY_IMAGE, **ray}, *sidecars]
    return builder.with_head_pod(containers=containers)


SAMPLES: Final = {
    "sample-of-the-documentation": PLAIN.with_head(rayStartParams={})
    .with_head_container(resources=SIZE, ports=PORTS[:3])
    .with_workers(
        "workergroup", replicas=1, minReplicas=1, maxReplicas=5, rayStartParams={}, container={"resources": SIZE}
    ),
    "sample-with-a-command-before-ray": PLAIN.with_head_container(
        command=["echo 123"], args=["456"], resources=SIZE
    ).with_workers(replicas=1, container={"args": ["(sleep 1; date) & sleep 2"]}),
    "sample-that-starts-ray-itself": PLAIN.with_head_container(
        command=["/bin/bash", "-lc", "--"], args=["ray start --head --port=6379 --block"]
    ).with_workers(
        replicas=1,
        container={"command": ["/bin/bash", "-c", "--"], "args": ["ulimit -n 65536; $KUBERAY_GEN_RAY_START_CMD"]},
    ),
    "sample-that-overwrites-its-command": PLAIN.annotated({labels.OVERWRITE_CONTAINER_CMD: "true"})
    .with_head_container(
        command=["/bin/bash", "-lc", "--"], args=["ulimit -n 65536; echo head; $KUBERAY_GEN_RAY_START_CMD"]
    )
    .with_workers(
        replicas=1,
        container={"command": ["/bin/bash", "-lc", "--"], "args": ["echo worker; $KUBERAY_GEN_RAY_START_CMD"]},
    ),
    "sample-with-certificates-of-its-own": PLAIN.with_head_container(**ENCRYPTED)
    .with_head_pod(**CERTIFICATE_POD)
    .with_workers(replicas=1, container=ENCRYPTED, pod=CERTIFICATE_POD),
    "sample-with-a-log-shipper": _beside_ray(
        PLAIN, SHIPPER, volumeMounts=[{"mountPath": "/tmp/ray", "name": "ray-logs"}], resources=SIZE
    )
    .with_head_pod(**LOGS)
    .autoscaled(idleTimeoutSeconds=60, upscalingMode="Default", imagePullPolicy="IfNotPresent", env=[], envFrom=[])
    .with_workers(replicas=1),
    "sample-behind-a-proxy": _beside_ray(
        PLAIN,
        {"name": "kube-rbac-proxy", "image": "kube-rbac-proxy:1", "ports": [{"containerPort": 8443, "name": "https"}]},
        env=[{"name": "RAY_GRAFANA_IFRAME_HOST", "value": "http://127.0.0.1:3000"}],
        ports=PORTS,
        securityContext={"capabilities": {"add": ["SYS_PTRACE"]}},
        lifecycle={"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}},
    ).with_head(rayStartParams={"dashboard-host": "127.0.0.1", "object-store-memory": "100000000", "block": "false"}),
    "sample-with-a-head-service-of-its-own": PLAIN.with_head(
        headService={
            "metadata": {"name": "rc-mine", "labels": {"custom-label": "a"}, "annotations": {"custom-annotation": "a"}},
            "spec": {
                "type": "ClusterIP",
                "ports": [{"name": "my-port", "port": 12345, "targetPort": 12345, "protocol": "TCP"}],
            },
        }
    ).with_workers(replicas=1),
    "sample-of-a-sandbox": PLAIN.with_head_container(**SANDBOXED).with_workers(replicas=1, container=SANDBOXED),
    "sample-of-a-queue": PLAIN.labelled(
        {"kueue.x-k8s.io/queue-name": "user-queue", "volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    ).with_workers(replicas=1),
    "sample-of-a-tpu-slice": PLAIN.with_head(rayStartParams={"num-cpus": "0"}).with_workers(
        "tpu-group",
        replicas=1,
        numOfHosts=2,
        rayStartParams={"resources": '"{\\"tpu-group\\": 1}"'},
        container={"resources": {"limits": {"cpu": "1", "google.com/tpu": "4", "memory": "20G"}}},
        pod=TPU_SLICE,
    ),
    "sample-with-redis-of-old": PLAIN.annotated({labels.FT_ENABLED: "true"})
    .with_head(rayStartParams={"num-cpus": "0", "redis-password": "$REDIS_PASSWORD"})
    .with_head_container(
        env=[
            {"name": "RAY_REDIS_ADDRESS", "value": "redis:6379"},
            {"name": "REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
        ]
    )
    .with_workers(replicas=1),
}
"""Each a manifest that is made every day somewhere."""

"""One accepted and one refused RayCluster for every rule, as manifests: for pure tests and for the real API server.

The CRD accepts all of them; it is the operator that refuses. The numbers are those of KubeRay's rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api.meta import JSON
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.gates import FeatureGates, Gate

DEFAULT_GATES = FeatureGates()
HISTORY = FeatureGates({Gate.HISTORY_SERVER: True})
ROCKSDB = FeatureGates({Gate.EMBEDDED_GCS_STORAGE: True})
NETWORK_POLICY = FeatureGates({Gate.NETWORK_POLICY: True})
MTLS = FeatureGates({Gate.MTLS: True})
NO_DELETION_POLICY = FeatureGates({Gate.RAYJOB_DELETION_POLICY: False})

WITH_CERT_MANAGER = ApiServerFacts((1, 36), is_openshift=False, has_cert_manager=True)
"""So that specs which ask for encryption are judged by the other rules."""

HEAD = "spec.headGroupSpec"
WORKERS = "spec.workerGroupSpecs[0]"
HEAD_ENV = f"{HEAD}.template.spec.containers[0].env"
GCS = "spec.gcsFaultToleranceOptions"
COLLECTOR = "spec.historyServerOptions.collectorOptions"


@dataclass(frozen=True)
class Case:
    """A rule, an object that keeps it, an object that breaks it and nothing else, and the field to be named."""

    sentence: str
    accepted: ClusterBuilder
    refused: ClusterBuilder
    field: str
    gates: FeatureGates = DEFAULT_GATES
    """Under which both are judged."""


def with_redis(**options: Any) -> ClusterBuilder:
    return a_cluster().with_spec(gcsFaultToleranceOptions={"redisAddress": "redis:6379"} | options)


def with_rocksdb(**options: Any) -> ClusterBuilder:
    return a_cluster().with_spec(gcsFaultToleranceOptions={"backend": "rocksdb"} | options)


def with_collector(*env: tuple[str, str], **options: Any) -> ClusterBuilder:
    entries = [{"name": name, "value": value} for name, value in env]
    collector = {"image": "collector:1", "env": entries} | options
    return a_cluster().with_spec(historyServerOptions={"collectorOptions": collector})


def with_auth(ray_version: str = "2.60.0", **options: Any) -> ClusterBuilder:
    return a_cluster().with_spec(rayVersion=ray_version, authOptions={"mode": "token"} | options)


def with_network_policy(**config: Any) -> ClusterBuilder:
    return a_cluster().with_workers("gpu").with_spec(networkPolicy=config)


def with_tls() -> ClusterBuilder:
    return a_cluster().with_spec(tlsOptions={"enabled": True})


def a_group(number: int) -> JSON:
    return {"groupName": f"g{number}", "template": {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}}


S3 = (("STORAGE_BACKEND", "S3"), ("S3_REGION", "eu"))
ANY_INGRESS: JSON = {"ingressRules": [{"from": [{"podSelector": {}}]}]}
ANY_EGRESS: JSON = {"egressRules": [{"to": [{"podSelector": {}}]}]}

METADATA = [
    Case(
        "a name has at most 53 characters",
        a_cluster().named("a" * 53),
        a_cluster().named("a" * 54),
        "metadata.name",
    ),
    Case(
        "a name starts with a letter",
        a_cluster().named("a1"),
        a_cluster().named("1a"),
        "metadata.name",
    ),
]

UPGRADE = [
    Case(
        f"upgrades of a cluster made by a {maker} are the {maker}'s",
        a_cluster().with_spec(upgradeStrategy={"type": "Recreate"}),
        a_cluster().with_spec(upgradeStrategy={"type": "None"}).labelled({"ray.io/originated-from-crd": maker}),
        "spec.upgradeStrategy.type",
    )
    for maker in ("RayJob", "RayService")
]

GROUPS = [
    Case(
        "the worker groups of a cluster are at most a thousand",
        a_cluster().with_spec(workerGroupSpecs=[a_group(number) for number in range(1000)]),
        a_cluster().with_spec(workerGroupSpecs=[a_group(number) for number in range(1001)]),
        "spec.workerGroupSpecs",
    ),
    Case(
        "the pods of all groups are at most a hundred thousand",
        a_cluster().with_workers(replicas=50_000, numOfHosts=2),
        a_cluster().with_workers(replicas=3_000_000),
        f"{WORKERS}.replicas",
    ),
    Case(
        "hosts count as pods",
        a_cluster().with_workers(replicas=0, numOfHosts=2**31 - 1),
        a_cluster().with_workers(replicas=1, numOfHosts=2**31 - 1),
        f"{WORKERS}.replicas",
    ),
    Case(
        "1: the head has a container",
        a_cluster(),
        a_cluster().with_head_pod(containers=[]),
        f"{HEAD}.template.spec.containers",
    ),
    Case(
        "1: a worker has a container",
        a_cluster().with_workers(),
        a_cluster().with_workers(pod={"containers": []}),
        f"{WORKERS}.template.spec.containers",
    ),
    *(
        Case(
            f"2: resources are not given by {param} as well",
            a_cluster().with_head(rayStartParams={param: ""}, resources={"CPU": "1"}),
            a_cluster().with_head(rayStartParams={param: "1"}, resources={"CPU": "1"}),
            f"{HEAD}.rayStartParams[{param}]",
        )
        for param in ("num-cpus", "num-gpus", "memory", "resources")
    ),
    Case(
        "2: workers give their resources once",
        a_cluster().with_workers(resources={"CPU": "1"}),
        a_cluster().with_workers(rayStartParams={"num-cpus": "1"}, resources={"CPU": "1"}),
        f"{WORKERS}.rayStartParams[num-cpus]",
    ),
    Case(
        "3: labels are not given by rayStartParams",
        a_cluster().with_head(labels={"ray.io/zone": "a"}),
        a_cluster().with_head(rayStartParams={"labels": "zone=a"}),
        f"{HEAD}.rayStartParams[labels]",
    ),
    Case(
        "3: a label's key is a qualified name",
        a_cluster().with_workers(labels={"example.com/zone": "a"}),
        a_cluster().with_workers(labels={"-zone": "a"}),
        f"{WORKERS}.labels[-zone]",
    ),
    Case(
        "3: a label's value is a label value",
        a_cluster().with_workers(labels={"zone": ""}),
        a_cluster().with_workers(labels={"zone": "a b"}),
        f"{WORKERS}.labels[zone]",
    ),
    Case(
        "worker groups differ in name",
        a_cluster().with_workers("cpu").with_workers("gpu"),
        a_cluster().with_workers("cpu").with_workers("cpu"),
        "spec.workerGroupSpecs[1].groupName",
    ),
    Case(
        "4: there is no negative minimum",
        a_cluster().with_workers(minReplicas=0),
        a_cluster().with_workers(minReplicas=-1),
        f"{WORKERS}.minReplicas",
    ),
    Case(
        "4: there is no negative maximum",
        a_cluster().with_workers(maxReplicas=0),
        a_cluster().with_workers(maxReplicas=-1),
        f"{WORKERS}.maxReplicas",
    ),
    Case(
        "4: the minimum is at most the maximum, wherever the replicas are",
        a_cluster().with_workers(minReplicas=2, maxReplicas=2, replicas=9),
        a_cluster().with_workers(minReplicas=3, maxReplicas=2),
        f"{WORKERS}.minReplicas",
    ),
    Case(
        "11: suspended groups need their gate",
        a_cluster().with_workers(suspend=False),
        a_cluster().with_workers(suspend=True),
        f"{WORKERS}.suspend",
        NO_DELETION_POLICY,
    ),
    Case(
        "11: groups of an autoscaled cluster cannot be suspended",
        a_cluster().with_workers(suspend=True),
        a_cluster().with_workers(suspend=True).autoscaled(),
        f"{WORKERS}.suspend",
    ),
]

AUTOSCALING = [
    Case(
        "5: a group's idle timeout is not negative",
        a_cluster().with_workers(idleTimeoutSeconds=0).autoscaled(version="v2"),
        a_cluster().with_workers(idleTimeoutSeconds=-1).autoscaled(version="v2"),
        f"{WORKERS}.idleTimeoutSeconds",
    ),
    Case(
        "5: a group's idle timeout needs the autoscaler v2, by field or environment",
        a_cluster().with_workers(idleTimeoutSeconds=5).autoscaled().with_head_env("RAY_enable_autoscaler_v2", "1"),
        a_cluster().with_workers(idleTimeoutSeconds=5).autoscaled(version="v1"),
        f"{WORKERS}.idleTimeoutSeconds",
    ),
    Case(
        "6: a group's priority needs Ray 2.56",
        a_cluster().with_workers(priority=1).autoscaled(version="v2").with_spec(rayVersion="2.56.0"),
        a_cluster().with_workers(priority=1).autoscaled(version="v2").with_spec(rayVersion="2.55.9"),
        f"{WORKERS}.priority",
    ),
    Case(
        "6: a group's priority needs a version that can be read",
        a_cluster().with_workers(priority=0).autoscaled(version="v2").with_spec(rayVersion="nightly"),
        a_cluster().with_workers(priority=1).autoscaled(version="v2").with_spec(rayVersion="nightly"),
        f"{WORKERS}.priority",
    ),
    Case(
        "6: a group's priority needs the autoscaler v2",
        a_cluster().with_workers(priority=1).autoscaled(version="v2").with_spec(rayVersion="2.60"),
        a_cluster().with_workers(priority=1).autoscaled(version="v1").with_spec(rayVersion="2.60"),
        f"{WORKERS}.priority",
    ),
    Case(
        "12: without autoscaling the environment turns no autoscaler on",
        a_cluster().with_head_env("RAY_enable_autoscaler_v2", "0"),
        a_cluster().with_head_env("RAY_enable_autoscaler_v2", "true"),
        f"{HEAD_ENV}[RAY_enable_autoscaler_v2]",
    ),
    Case(
        "12: the autoscaler's version is not in the environment as well",
        a_cluster().autoscaled().with_head_env("RAY_enable_autoscaler_v2", "true"),
        a_cluster().autoscaled(version="v1").with_head_env("RAY_enable_autoscaler_v2", "0"),
        f"{HEAD_ENV}[RAY_enable_autoscaler_v2]",
    ),
    Case(
        "13: under the autoscaler v2 the head is not restarted in place",
        a_cluster().autoscaled(version="v2").with_head_pod(restartPolicy="Never"),
        a_cluster().autoscaled(version="v2").with_head_pod(restartPolicy="Always"),
        f"{HEAD}.template.spec.restartPolicy",
    ),
    Case(
        "13: under the autoscaler v2 workers are not restarted in place",
        a_cluster().autoscaled(version="v1").with_workers(pod={"restartPolicy": "Always"}),
        a_cluster().autoscaled(version="v2").with_workers(pod={"restartPolicy": "OnFailure"}),
        f"{WORKERS}.template.spec.restartPolicy",
    ),
    Case(
        "14: the idle timeout is not negative",
        a_cluster().autoscaled(idleTimeoutSeconds=0),
        a_cluster().autoscaled(idleTimeoutSeconds=-1),
        "spec.autoscalerOptions.idleTimeoutSeconds",
    ),
    Case(
        "14: the autoscaler's start command is the operator's",
        a_cluster().autoscaled(env=[{"name": "MINE", "value": "1"}]),
        a_cluster().autoscaled(env=[{"name": "KUBERAY_GEN_AUTOSCALER_START_CMD", "value": "x"}]),
        "spec.autoscalerOptions.env[KUBERAY_GEN_AUTOSCALER_START_CMD]",
    ),
]

FAULT_TOLERANCE = [
    Case(
        "7: fault tolerance is not asked for by annotation as well",
        with_redis().annotated({"ray.io/ft-enabled": ""}),
        with_redis().annotated({"ray.io/ft-enabled": "false"}),
        "metadata.annotations[ray.io/ft-enabled]",
    ),
    Case(
        "8: an address of Redis needs fault tolerance",
        a_cluster().annotated({"ray.io/ft-enabled": "True"}).with_head_env("RAY_REDIS_ADDRESS"),
        a_cluster().with_head_env("RAY_REDIS_ADDRESS"),
        f"{HEAD_ENV}[RAY_REDIS_ADDRESS]",
    ),
    Case(
        "9: the password is not a parameter of ray start",
        with_redis().with_head(rayStartParams={"redis-password": ""}),
        with_redis().with_head(rayStartParams={"redis-password": "x"}),
        f"{HEAD}.rayStartParams[redis-password]",
    ),
    Case(
        "9: the password is not in the environment",
        with_redis(redisPassword={"value": "x"}),
        with_redis().with_head_env("REDIS_PASSWORD"),
        f"{HEAD_ENV}[REDIS_PASSWORD]",
    ),
    Case(
        "9: the address is not in the environment",
        with_redis(),
        with_redis().with_head_env("RAY_REDIS_ADDRESS"),
        f"{HEAD_ENV}[RAY_REDIS_ADDRESS]",
    ),
    Case(
        "9: the storage namespace is not an annotation",
        with_redis(externalStorageNamespace="ns"),
        with_redis().annotated({"ray.io/external-storage-namespace": "ns"}),
        "metadata.annotations[ray.io/external-storage-namespace]",
    ),
    Case(
        "9: rocksdb needs its gate",
        with_redis(backend="redis"),
        with_rocksdb(),
        f"{GCS}.backend",
    ),
    *(
        Case(
            f"9: rocksdb has no {option}",
            with_rocksdb(),
            with_rocksdb(**{option: value}),
            f"{GCS}.{option}",
            ROCKSDB,
        )
        for option, value in {
            "redisAddress": "redis:6379",
            "redisUsername": {"value": "x"},
            "redisPassword": {"value": "x"},
            "externalStorageNamespace": "ns",
        }.items()
    ),
    *(
        Case(
            f"9: a claim that exists has its own {option}",
            with_rocksdb(storage={option: value}),
            with_rocksdb(storage={"claimName": "mine", option: value}),
            f"{GCS}.storage.{option}",
            ROCKSDB,
        )
        for option, value in {"size": "5Gi", "storageClassName": "fast", "accessModes": ["ReadWriteMany"]}.items()
    ),
    *(
        Case(
            f"9: rocksdb's {name} is the operator's",
            with_rocksdb(storage={"claimName": "mine", "subPath": "here"}),
            with_rocksdb().with_head_env(name),
            f"{HEAD_ENV}[{name}]",
            ROCKSDB,
        )
        for name in ("RAY_gcs_storage", "RAY_gcs_storage_path")
    ),
    Case(
        "9: nothing else is mounted where rocksdb's volume goes",
        with_rocksdb()
        .with_head_container(volumeMounts=[{"name": "mine", "mountPath": "/data"}])
        .with_head_pod(volumes=[{"name": "mine", "emptyDir": {}}]),
        with_rocksdb().with_head_container(volumeMounts=[{"name": "mine", "mountPath": "/data/gcs"}]),
        f"{HEAD}.template.spec.containers[0].volumeMounts[/data/gcs]",
        ROCKSDB,
    ),
    Case(
        "9: no mount has the name of rocksdb's volume",
        with_rocksdb(),
        with_rocksdb().with_head_container(volumeMounts=[{"name": "gcs-storage", "mountPath": "/mine"}]),
        f"{HEAD}.template.spec.containers[0].volumeMounts[/mine]",
        ROCKSDB,
    ),
    Case(
        "9: no volume has the name of rocksdb's",
        with_rocksdb().with_head_pod(volumes=[{"name": "mine", "emptyDir": {}}]),
        with_rocksdb().with_head_pod(volumes=[{"name": "gcs-storage", "emptyDir": {}}]),
        f"{HEAD}.template.spec.volumes[gcs-storage]",
        ROCKSDB,
    ),
    Case(
        "9: Redis has no volume",
        with_rocksdb(storage={"size": "1Gi"}),
        with_redis(storage={"size": "1Gi"}),
        f"{GCS}.storage",
        ROCKSDB,
    ),
    Case(
        "10: the user of Redis is not a parameter of ray start",
        a_cluster().with_head(rayStartParams={"redis-username": ""}),
        a_cluster().with_head(rayStartParams={"redis-username": "x"}),
        f"{HEAD}.rayStartParams[redis-username]",
    ),
    Case(
        "10: the user of Redis is not in the environment",
        with_redis(redisUsername={"value": "x"}),
        a_cluster().with_head_env("REDIS_USERNAME"),
        f"{HEAD_ENV}[REDIS_USERNAME]",
    ),
]

HISTORY_SERVER = [
    Case(
        "15: a collector needs its gate",
        a_cluster(),
        with_collector(*S3),
        "spec.historyServerOptions",
    ),
    Case(
        "15: history needs a collector",
        with_collector(*S3),
        a_cluster().with_spec(historyServerOptions={}),
        COLLECTOR,
        HISTORY,
    ),
    Case(
        "15: a collector has an image",
        with_collector(*S3),
        with_collector(*S3, image=""),
        f"{COLLECTOR}.image",
        HISTORY,
    ),
    Case(
        "15: a collector has a backend, and one of its own making is let through",
        with_collector(("STORAGE_BACKEND", "mine")),
        with_collector(),
        f"{COLLECTOR}.env[STORAGE_BACKEND]",
        HISTORY,
    ),
    *(
        Case(
            f"15: {backend} needs {missing}",
            with_collector(("STORAGE_BACKEND", backend), *((name, "x") for name in needed)),
            with_collector(("STORAGE_BACKEND", backend), *((name, "x") for name in needed if name != missing)),
            f"{COLLECTOR}.env[{missing}]",
            HISTORY,
        )
        for backend, needed in {
            "gcs": ["GCS_BUCKET"],
            "S3": ["S3_REGION"],
            "AliyunOSS": ["OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"],
            "AzureBlob": ["AZURE_STORAGE_CONNECTION_STRING"],
        }.items()
        for missing in needed
    ),
    *(
        Case(
            f"15: AZUREBLOB with {mode} needs {needed}",
            with_collector(("STORAGE_BACKEND", "AZUREBLOB"), ("AZURE_STORAGE_AUTH_MODE", mode), (needed, "x")),
            with_collector(("STORAGE_BACKEND", "AZUREBLOB"), ("AZURE_STORAGE_AUTH_MODE", mode), (other, "x")),
            f"{COLLECTOR}.env[{needed}]",
            HISTORY,
        )
        for mode, needed, other in [
            ("connection_string", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"),
            ("workload_identity", "AZURE_STORAGE_ACCOUNT_URL", "AZURE_STORAGE_CONNECTION_STRING"),
            ("default", "AZURE_STORAGE_ACCOUNT_URL", "AZURE_STORAGE_CONNECTION_STRING"),
            (" Connection_String ", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"),
        ]
    ),
    *(
        Case(
            f"15: the collector's {name} is the operator's",
            with_collector(*S3, ("MINE", "1")),
            with_collector(*S3, (name, "1")),
            f"{COLLECTOR}.env[{name}]",
            HISTORY,
        )
        for name in [
            "POD_IP",
            "FQ_RAY_IP",
            "RAY_CLUSTER_NAME",
            "RAY_CLUSTER_NAMESPACE",
            "RAY_ROLE",
            "OWNER_KIND",
            "OWNER_NAME",
            "EVENTS_PORT",
        ]
    ),
    Case(
        "15: a variable that the storage needs has a value",
        with_collector(("STORAGE_BACKEND", "gcs"), ("GCS_BUCKET", "b")),
        with_collector(("STORAGE_BACKEND", "gcs"), ("GCS_BUCKET", "")),
        f"{COLLECTOR}.env[GCS_BUCKET]",
        HISTORY,
    ),
    Case(
        "15: no other container has the collector's name",
        with_collector(*S3).with_workers(),
        with_collector(*S3).with_workers(
            pod={"containers": [{"name": "ray", "image": "ray"}, {"name": "ray-history-collector", "image": "mine"}]}
        ),
        f"{WORKERS}.template.spec.containers[ray-history-collector]",
        HISTORY,
    ),
]

SECURITY = [
    Case(
        "16: tokens need a version of Ray",
        with_auth(ray_version="", mode="disabled"),
        with_auth(ray_version=""),
        "spec.rayVersion",
    ),
    Case(
        "16: tokens need a version that can be read",
        with_auth(ray_version="2.52"),
        with_auth(ray_version="nightly"),
        "spec.rayVersion",
    ),
    Case(
        "16: tokens need Ray 2.52",
        with_auth(ray_version="2.52.0"),
        with_auth(ray_version="2.51.9"),
        "spec.rayVersion",
    ),
    Case(
        "16: Kubernetes tokens need Ray 2.55",
        with_auth(ray_version="2.55.0", enableK8sTokenAuth=True),
        with_auth(ray_version="2.54.9", enableK8sTokenAuth=True),
        "spec.rayVersion",
    ),
    Case(
        "16: Kubernetes tokens need no Secret",
        with_auth(secretName="mine"),
        with_auth(enableK8sTokenAuth=True, secretName="mine"),
        "spec.authOptions.secretName",
    ),
    Case(
        "16: Kubernetes tokens need mode token",
        with_auth(mode="disabled", enableK8sTokenAuth=False),
        with_auth(mode="disabled", enableK8sTokenAuth=True),
        "spec.authOptions.enableK8sTokenAuth",
    ),
    Case(
        "17: network policies need their gate",
        a_cluster(),
        with_network_policy(mode="DenyAll"),
        "spec.networkPolicy",
    ),
    *(
        Case(
            f"17: {mode} has no {kind} of {who}",
            with_network_policy(mode="DenyAll", **{who: rules}),
            with_network_policy(mode=mode, **{who: rules}),
            f"spec.networkPolicy.{who}.{kind}",
            NETWORK_POLICY,
        )
        for mode, kind, rules in [
            ("DenyAllEgress", "ingressRules", ANY_INGRESS),
            ("DenyAllIngress", "egressRules", ANY_EGRESS),
        ]
        for who in ("head", "worker")
    ),
    Case(
        "17: the mode holds for single groups too",
        with_network_policy(mode="DenyAllIngress", workerGroups=[{"groupName": "gpu"} | ANY_INGRESS]),
        with_network_policy(mode="DenyAllEgress", workerGroups=[{"groupName": "gpu"} | ANY_INGRESS]),
        "spec.networkPolicy.workerGroups[0].ingressRules",
        NETWORK_POLICY,
    ),
    Case(
        "17: a worker group's name can be part of a policy's",
        with_network_policy(),
        a_cluster().with_workers("GPU").with_spec(networkPolicy={}),
        f"{WORKERS}.groupName",
        NETWORK_POLICY,
    ),
    Case(
        "17: a policy's worker group exists",
        with_network_policy(workerGroups=[{"groupName": "gpu"}]),
        with_network_policy(workerGroups=[{"groupName": "cpu"}]),
        "spec.networkPolicy.workerGroups[0].groupName",
        NETWORK_POLICY,
    ),
    Case(
        "18: encryption needs its gate, even to say no",
        a_cluster(),
        a_cluster().with_spec(tlsOptions={"enabled": False}),
        "spec.tlsOptions",
    ),
    *(
        Case(
            f"18: the head's {name} is the operator's",
            a_cluster().with_spec(tlsOptions={"enabled": False}).with_head_env(name),
            with_tls().with_head_env(name),
            f"{HEAD_ENV}[{name}]",
            MTLS,
        )
        for name in ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
    ),
    Case(
        "18: workers' certificates are the operator's",
        with_tls().with_workers(container={"env": [{"name": "MINE", "value": "1"}]}),
        with_tls().with_workers(container={"env": [{"name": "RAY_USE_TLS", "value": "1"}]}),
        f"{WORKERS}.template.spec.containers[0].env[RAY_USE_TLS]",
        MTLS,
    ),
    Case(
        "18: the autoscaler's certificates are the operator's",
        with_tls().autoscaled(env=[{"name": "MINE", "value": "1"}]),
        with_tls().autoscaled(env=[{"name": "RAY_TLS_CA_CERT", "value": "x"}]),
        "spec.autoscalerOptions.env[RAY_TLS_CA_CERT]",
        MTLS,
    ),
    Case(
        "18: nothing else is mounted where the certificates go",
        with_tls().with_head_container(volumeMounts=[{"name": "mine", "mountPath": "/etc/ray"}]),
        with_tls().with_head_container(volumeMounts=[{"name": "mine", "mountPath": "/etc/ray/tls"}]),
        f"{HEAD}.template.spec.containers[0].volumeMounts[/etc/ray/tls]",
        MTLS,
    ),
    Case(
        "18: no mount of the autoscaler has the certificates' name",
        with_tls().autoscaled(volumeMounts=[{"name": "mine", "mountPath": "/mine"}]),
        with_tls().autoscaled(volumeMounts=[{"name": "ray-tls", "mountPath": "/mine"}]),
        "spec.autoscalerOptions.volumeMounts[/mine]",
        MTLS,
    ),
]

CASES = [*METADATA, *UPGRADE, *GROUPS, *AUTOSCALING, *FAULT_TOLERANCE, *HISTORY_SERVER, *SECURITY]

"""RayClusters whose children other than pods are worth looking at, for golden files and for the real API server."""

from __future__ import annotations

from rayclusters.histories import IN_S3, IN_S3_BY_ROLE, ON_ACK, remembered
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.operator.raycluster.children.desired import ChildSettings
from raykeeper.operator.shared.history import History

RANDOM_BYTES = bytes(range(32))

WITH_ADDRESS = ChildSettings(headless_head_service=False)
ON_OPENSHIFT = ChildSettings(uses_routes=True)


def with_ingress(**options: object) -> ClusterBuilder:
    return a_cluster().with_head(enableIngress=True, ingressOptions=options)


def with_rocksdb(**storage: object) -> ClusterBuilder:
    return a_cluster().with_spec(gcsFaultToleranceOptions={"backend": "rocksdb", "storage": storage})


def with_ports(*ports: tuple[str, int]) -> ClusterBuilder:
    declared = [({"name": name} if name else {}) | {"containerPort": number} for name, number in ports]
    return a_cluster().with_head_container(ports=declared)


OWN_HEAD_SERVICE = {
    "metadata": {
        "name": "my-head",
        "namespace": "elsewhere",
        "labels": {"team": "ml", "ray.io/cluster": "not-this"},
        "annotations": {"a": "service", "b": "service"},
    },
    "spec": {
        "type": "NodePort",
        "selector": {"not": "this"},
        "externalTrafficPolicy": "Local",
        "ports": [{"name": "dashboard", "port": 80, "targetPort": 8265}, {"port": 9000}],
    },
}

REMEMBERING = ChildSettings(history=History(ON_ACK))

CASES: dict[str, tuple[ClusterBuilder, ChildSettings]] = {
    "plain": (a_cluster(), ChildSettings()),
    "history": (remembered(), REMEMBERING),
    "history-of-an-autoscaled-cluster": (
        remembered(a_cluster().autoscaled()),
        ChildSettings(history=History(IN_S3_BY_ROLE)),
    ),
    "history-by-keys": (remembered(), ChildSettings(history=History(IN_S3))),
    "head-service-with-address": (a_cluster(), WITH_ADDRESS),
    "head-service-node-port": (a_cluster().with_head(serviceType="NodePort"), ChildSettings()),
    "head-service-annotated": (a_cluster().with_spec(headServiceAnnotations={"a": "1"}), ChildSettings()),
    "head-service-of-the-user": (
        a_cluster().with_head(headService=OWN_HEAD_SERVICE).with_spec(headServiceAnnotations={"b": "cluster"}),
        ChildSettings(),
    ),
    "head-service-of-the-user-empty": (
        a_cluster().with_head(headService={}, serviceType="LoadBalancer"),
        ChildSettings(),
    ),
    "head-ports-declared": (with_ports(("gcs", 6380), ("dashboard", 8266), ("", 7000)), ChildSettings()),
    "head-port-has-the-number-of-metrics": (with_ports(("web", 8080)), ChildSettings()),
    "head-template-names-the-application": (
        a_cluster().with_head(
            template={
                "metadata": {"labels": {"app.kubernetes.io/name": "mine", "app.kubernetes.io/created-by": "me"}},
                "spec": {"containers": [{"name": "ray", "image": "ray"}]},
            }
        ),
        ChildSettings(),
    ),
    "multi-host": (a_cluster().with_workers("tpu", numOfHosts=4).with_workers("cpu"), ChildSettings()),
    "serve": (a_cluster().annotated({"ray.io/enable-serve-service": "true"}), ChildSettings()),
    "serve-on-several-ports": (
        with_ports(("serve", 8000), ("serve-grpc", 9000), ("server", 9001))
        .annotated({"ray.io/enable-serve-service": "true"})
        .with_head(serviceType="NodePort"),
        ChildSettings(),
    ),
    "autoscaled": (a_cluster().autoscaled(), ChildSettings()),
    "autoscaled-with-own-service-account": (
        a_cluster().autoscaled().with_head_pod(serviceAccountName="default"),
        ChildSettings(),
    ),
    "ingress": (with_ingress(), ChildSettings()),
    "ingress-of-a-class": (
        with_ingress().annotated(
            {
                "kubernetes.io/ingress.class": "nginx",
                "nginx.ingress.kubernetes.io/proxy-body-size": "8m",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            }
        ),
        ChildSettings(),
    ),
    "ingress-with-options": (
        with_ingress(
            host="ray.example.com",
            path="/ray",
            pathType="Exact",
            tls=[{"hosts": ["ray.example.com"], "secretName": "cert"}],
        ).with_head(headService={"metadata": {"name": "my-head"}}),
        ChildSettings(),
    ),
    "ingress-to-a-service-of-the-user": (with_ingress().with_head(headService=OWN_HEAD_SERVICE), ChildSettings()),
    "route": (with_ingress().annotated({"haproxy.router.openshift.io/timeout": "5m"}), ON_OPENSHIFT),
    "auth-secret": (a_cluster().with_spec(rayVersion="2.60.0", authOptions={"mode": "token"}), ChildSettings()),
    "auth-secret-of-the-user": (
        a_cluster().with_spec(rayVersion="2.60.0", authOptions={"mode": "token", "secretName": "mine"}),
        ChildSettings(),
    ),
    "rocksdb": (with_rocksdb(), ChildSettings()),
    "rocksdb-retained": (
        with_rocksdb(
            size="5Gi", storageClassName="fast", accessModes=["ReadWriteMany"], deletionPolicy="Retain", subPath="here"
        ),
        ChildSettings(),
    ),
    "rocksdb-on-the-users-claim": (with_rocksdb(claimName="mine"), ChildSettings()),
    "long-name": (
        a_cluster()
        .named("x1-a-cluster-name-of-the-greatest-length-there-may-be")
        .autoscaled()
        .annotated({"ray.io/enable-serve-service": "true"})
        .with_workers("tpu", numOfHosts=2)
        .with_head(enableIngress=True)
        .with_spec(rayVersion="2.60.0", authOptions={"mode": "token"}),
        ChildSettings(),
    ),
}

"""Ways in which a child stops being what it should be, for pure tests and for the real API server."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from rayclusters.children_cases import OWN_HEAD_SERVICE, WITH_ADDRESS, with_ingress, with_ports
from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.children.desired import ChildSettings
from raykeeper.operator.shared.children.keys import ChildKey

HEAD_SERVICE = ChildKey("Service", "rc-head-svc")
INGRESS = ChildKey("Ingress", "rc-head-ingress")
SECRET = ChildKey("Secret", "rc")
ROLE = ChildKey("Role", "rc")
ROLE_BINDING = ChildKey("RoleBinding", "rc")
SERVICE_ACCOUNT = ChildKey("ServiceAccount", "rc")

NODE_PORT = a_cluster().with_head(serviceType="NodePort")
AUTOSCALED = a_cluster().autoscaled()
WITH_TOKEN = a_cluster().with_spec(rayVersion="2.60.0", authOptions={"mode": "token"})
MULTI_HOST = a_cluster().with_workers("tpu", numOfHosts=2)
SERVE = a_cluster().annotated({"ray.io/enable-serve-service": "true"})
ANNOTATED = a_cluster().with_spec(headServiceAnnotations={"a": "1", "b": "2"})
RAY_VERSION_LABEL = {"ray.io/cluster": "x"}


@dataclass(frozen=True)
class Meddling:
    """Someone's merge patch of a child, all of which the operator takes back."""

    sentence: str
    cluster: ClusterBuilder
    child: ChildKey
    patch: JSON


@dataclass(frozen=True)
class Change:
    """Two specs, one after the other, and what happens to a child: a patch, or the words of its replacement."""

    sentence: str
    before: ClusterBuilder
    after: ClusterBuilder
    child: ChildKey = HEAD_SERVICE
    replaced_because: str = ""
    cuts_connections: bool = False
    before_settings: ChildSettings = field(default_factory=ChildSettings)
    after_settings: ChildSettings = field(default_factory=ChildSettings)


def _metadata(**fields: Any) -> JSON:
    return {"metadata": fields}


def _spec(**fields: Any) -> JSON:
    return {"spec": fields}


MEDDLINGS = [
    Meddling("a label is changed", a_cluster(), HEAD_SERVICE, _metadata(labels={"ray.io/node-type": "x"})),
    Meddling("a label is removed", a_cluster(), HEAD_SERVICE, _metadata(labels={"ray.io/cluster": None})),
    Meddling("all labels are removed", a_cluster(), HEAD_SERVICE, _metadata(labels=None)),
    Meddling("an annotation is changed", ANNOTATED, HEAD_SERVICE, _metadata(annotations={"a": "x"})),
    Meddling("all annotations are removed", ANNOTATED, HEAD_SERVICE, _metadata(annotations=None)),
    Meddling("the selector is changed", a_cluster(), HEAD_SERVICE, _spec(selector={"ray.io/cluster": "x"})),
    Meddling("the selector is narrowed", a_cluster(), HEAD_SERVICE, _spec(selector={"version": "blue"})),
    Meddling("the selector is removed", a_cluster(), HEAD_SERVICE, _spec(selector=None)),
    Meddling(
        "a port is added",
        with_ports(("dashboard", 8265)),
        HEAD_SERVICE,
        _spec(ports=[{"name": "dashboard", "port": 8265}, {"name": "metrics", "port": 8080}, {"name": "x", "port": 1}]),
    ),
    Meddling("ports are removed", a_cluster(), HEAD_SERVICE, _spec(ports=[{"name": "dashboard", "port": 8265}])),
    Meddling(
        "a port leads elsewhere",
        with_ports(("metrics", 8080)),
        HEAD_SERVICE,
        _spec(ports=[{"name": "metrics", "port": 8080, "targetPort": 81, "appProtocol": "tcp"}]),
    ),
    Meddling(
        "a port speaks another protocol",
        with_ports(("metrics", 8080)),
        HEAD_SERVICE,
        _spec(ports=[{"name": "metrics", "port": 8080, "protocol": "UDP", "appProtocol": "tcp"}]),
    ),
    Meddling(
        "a port loses its application protocol",
        with_ports(("metrics", 8080)),
        HEAD_SERVICE,
        _spec(ports=[{"name": "metrics", "port": 8080}]),
    ),
    Meddling("the head must be ready", a_cluster(), HEAD_SERVICE, _spec(publishNotReadyAddresses=False)),
    Meddling("the type is changed", NODE_PORT, HEAD_SERVICE, _spec(type="LoadBalancer")),
    Meddling(
        "a port of a node port service is renamed",
        NODE_PORT.with_head_container(ports=[{"name": "metrics", "containerPort": 8080}]),
        HEAD_SERVICE,
        _spec(ports=[{"name": "x", "port": 8080}]),
    ),
    Meddling(
        "a field of the user's own service is changed",
        a_cluster().with_head(headService=OWN_HEAD_SERVICE),
        ChildKey("Service", "my-head"),
        _spec(externalTrafficPolicy="Cluster"),
    ),
    Meddling(
        "a port is added to the service between workers",
        MULTI_HOST,
        ChildKey("Service", "rc-headless"),
        _spec(ports=[{"port": 80}]),
    ),
    Meddling(
        "the service in front of Serve selects other pods",
        SERVE,
        ChildKey("Service", "rc-serve-svc"),
        _spec(selector={"ray.io/node-type": "head"}),
    ),
    Meddling("the Role's rules are changed", AUTOSCALED, ROLE, {"rules": []}),
    Meddling("the Role's labels are changed", AUTOSCALED, ROLE, _metadata(labels=RAY_VERSION_LABEL)),
    Meddling("the Ingress has other rules", with_ingress(), INGRESS, _spec(rules=[{"host": "x.example.com"}])),
    Meddling("the Ingress has TLS", with_ingress(), INGRESS, _spec(tls=[{"secretName": "x"}])),
    Meddling(
        "the Ingress has another class",
        with_ingress().annotated({"kubernetes.io/ingress.class": "nginx"}),
        INGRESS,
        _spec(ingressClassName="traefik"),
    ),
    Meddling("the Ingress has other labels", with_ingress(), INGRESS, _metadata(labels=RAY_VERSION_LABEL)),
    Meddling("the token is removed", WITH_TOKEN, SECRET, {"data": None}),
    Meddling("the Secret's labels are removed", WITH_TOKEN, SECRET, _metadata(labels=None)),
]

MENDED_BY_REPLACEMENT = [
    Meddling("the binding's subjects are removed", AUTOSCALED, ROLE_BINDING, {"subjects": None}),
    Meddling(
        "the binding has another subject",
        AUTOSCALED,
        ROLE_BINDING,
        {"subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "default"}]},
    ),
]

LEFT_ALONE = [
    Meddling("labels of an account", AUTOSCALED, SERVICE_ACCOUNT, _metadata(labels=None)),
    Meddling("labels of a binding", AUTOSCALED, ROLE_BINDING, _metadata(labels=None)),
    Meddling("another's annotation", ANNOTATED, HEAD_SERVICE, _metadata(annotations={"cloud.example.com/lb": "1"})),
    Meddling("another's label", a_cluster(), HEAD_SERVICE, _metadata(labels={"team": "ml"})),
    Meddling("a field that nobody asked for", a_cluster(), HEAD_SERVICE, _spec(sessionAffinity="ClientIP")),
    Meddling("the class of an Ingress", with_ingress(), INGRESS, _spec(ingressClassName="the-default")),
    Meddling("another's annotation of an Ingress", with_ingress(), INGRESS, _metadata(annotations={"x": "y"})),
    Meddling("secrets of an account", AUTOSCALED, SERVICE_ACCOUNT, {"imagePullSecrets": [{"name": "registry"}]}),
    Meddling("other keys of the Secret", WITH_TOKEN, SECRET, {"data": {"mine": "eA=="}}),
    Meddling("a token that the user put there", WITH_TOKEN, SECRET, {"data": {"auth_token": "eA=="}}),
]

CHANGES = [
    Change("the service becomes reachable through nodes", a_cluster(), NODE_PORT, replaced_because="headless"),
    Change(
        "the service gets a load balancer",
        a_cluster(),
        a_cluster().with_head(serviceType="LoadBalancer"),
        replaced_because="headless",
    ),
    Change(
        "a node port service gets a load balancer",
        NODE_PORT,
        a_cluster().with_head(serviceType="LoadBalancer"),
    ),
    Change(
        "a node port service becomes headless",
        NODE_PORT,
        a_cluster(),
        replaced_because="it has an address",
        cuts_connections=True,
    ),
    Change(
        "a node port service becomes a plain one with an address",
        NODE_PORT,
        a_cluster(),
        before_settings=WITH_ADDRESS,
        after_settings=WITH_ADDRESS,
    ),
    Change(
        "services shall have addresses from now on",
        a_cluster(),
        a_cluster(),
        replaced_because="headless",
        after_settings=WITH_ADDRESS,
    ),
    Change(
        "services shall have no addresses any more",
        a_cluster(),
        a_cluster(),
        replaced_because="it has an address",
        cuts_connections=True,
        before_settings=WITH_ADDRESS,
    ),
    Change("the head declares ports", a_cluster(), with_ports(("dashboard", 8266))),
    Change("annotations are added", a_cluster(), ANNOTATED),
    Change("an annotation is taken away", ANNOTATED, a_cluster().with_spec(headServiceAnnotations={"a": "1"})),
    Change("all annotations are taken away", ANNOTATED, a_cluster()),
    Change(
        "the user's service gets another port",
        a_cluster().with_head(headService={"spec": {"ports": [{"name": "x", "port": 1}]}}),
        a_cluster().with_head(headService={"spec": {"ports": [{"name": "x", "port": 2}]}}),
    ),
    Change(
        "the Ingress gets a host",
        with_ingress(),
        with_ingress(host="ray.example.com", tls=[{"hosts": ["ray.example.com"]}]),
        INGRESS,
    ),
    Change(
        "the Ingress loses an annotation and gets a class",
        with_ingress().annotated({"x": "1", "y": "2"}),
        with_ingress().annotated({"y": "3", "kubernetes.io/ingress.class": "nginx"}),
        INGRESS,
    ),
    Change(
        "the head runs under another account",
        AUTOSCALED,
        AUTOSCALED.with_head_pod(serviceAccountName="default"),
        ROLE_BINDING,
        replaced_because="other subjects",
    ),
]


def merged(target: JSON, patch: JSON) -> JSON:
    """The object after a JSON merge patch (RFC 7386)."""
    result = copy.deepcopy(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            known = result.get(key)
            result[key] = merged(known if isinstance(known, dict) else {}, value)
        else:
            result[key] = value
    return result

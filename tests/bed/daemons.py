"""Settings of a control plane and the flags they become. Pure: nothing here starts or writes anything."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bed.pki import KeyFiles
from bed.tokens import ISSUER

CLUSTER_DOMAIN = "cluster.local"
KUBERNETES_HOSTS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
LOOPBACK = "127.0.0.1"

Flags = dict[str, str]


@dataclass(frozen=True)
class ControlPlaneSettings:
    """What may differ between control planes. The defaults stay on loopback and fit any number side by side."""

    address: str = LOOPBACK
    """Where the API server listens, and the address its Service points to."""
    secure_port: int | None = None
    """Port of the API server; None picks a free one."""
    service_cidr: str = "10.96.0.0/16"
    pod_cidr: str = "10.244.0.0/16"
    sans: tuple[str, ...] = ()
    """Names and addresses of the API server beyond its own, such as those a proxy in front of it has."""
    durable: bool = False
    """Whether etcd syncs to disk. Only tests of durability pay for that."""
    watch_cache: bool = True
    """Whether the API server answers reads from memory. Else each read meets etcd, and a compaction shows at once."""
    older: bool = False
    """Whether it is of the older Kubernetes."""
    lavish: bool = False
    """Whether the API server may use more memory. With Ray's large CRDs in it, more than half of its processor time
    goes into collecting garbage; benchmarks measure it as it comes."""
    node_grace_seconds: int = 50
    """How long a silent node stays Ready; 50 is Kubernetes' default."""
    extra_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """More command line arguments by daemon name; they come last and so win."""


@dataclass(frozen=True)
class Ports:
    """Where the daemons of one control plane listen; kept over restarts."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int


@dataclass(frozen=True)
class KeyRing:
    """Every key file a daemon is pointed to."""

    authority: KeyFiles
    apiserver: KeyFiles
    kubelet_client: KeyFiles
    front_proxy: KeyFiles
    admin: KeyFiles
    service_accounts: KeyFiles
    """Not a certificate: the public key, and the private one that signs tokens."""
    controller_manager: KeyFiles
    scheduler: KeyFiles


def apiserver_sans(settings: ControlPlaneSettings) -> list[str]:
    """Names the API server is reached by: its own, the in-cluster ones and those asked for."""
    first_service = str(ipaddress.ip_network(settings.service_cidr)[1])
    in_cluster = [*KUBERNETES_HOSTS, f"kubernetes.default.svc.{CLUSTER_DOMAIN}", first_service]
    return list(dict.fromkeys([LOOPBACK, settings.address, *in_cluster, *settings.sans]))


def etcd_flags(settings: ControlPlaneSettings, ports: Ports, data: Path) -> Flags:
    """Flags of a one-member etcd."""
    client, peer = f"http://{LOOPBACK}:{ports.etcd}", f"http://{LOOPBACK}:{ports.etcd_peer}"
    flags = {
        "name": "bed",
        "data-dir": str(data),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"bed={peer}",
        "log-level": "warn",
        "quota-backend-bytes": str(4 * 1024**3),
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "5m",
    }
    return flags if settings.durable else flags | {"unsafe-no-fsync": "true"}


def apiserver_flags(settings: ControlPlaneSettings, ports: Ports, keys: KeyRing) -> Flags:
    """Flags of kube-apiserver: TLS, client certificates, service account tokens, RBAC, front proxy."""
    flags = {
        "etcd-servers": f"http://{LOOPBACK}:{ports.etcd}",
        "bind-address": settings.address,
        "advertise-address": settings.address,
        "secure-port": str(ports.apiserver),
        "service-cluster-ip-range": settings.service_cidr,
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "event-ttl": "2h",
        "client-ca-file": str(keys.authority.certificate),
        "tls-cert-file": str(keys.apiserver.certificate),
        "tls-private-key-file": str(keys.apiserver.key),
        "kubelet-certificate-authority": str(keys.authority.certificate),
        "kubelet-client-certificate": str(keys.kubelet_client.certificate),
        "kubelet-client-key": str(keys.kubelet_client.key),
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-issuer": ISSUER,
        "service-account-key-file": str(keys.service_accounts.certificate),
        "service-account-signing-key-file": str(keys.service_accounts.key),
        "requestheader-client-ca-file": str(keys.authority.certificate),
        "requestheader-allowed-names": FRONT_PROXY_USER,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": str(keys.front_proxy.certificate),
        "proxy-client-key-file": str(keys.front_proxy.key),
    }
    if not settings.watch_cache:
        flags["watch-cache"] = "false"
    if ipaddress.ip_address(settings.address).is_loopback:
        flags["endpoint-reconciler-type"] = "none"  # a Service's endpoint may not be a loopback address
    return flags


FRONT_PROXY_USER = "front-proxy-client"
"""Whoever shows a certificate of this name may say in headers for which user a request is."""

_UNTHROTTLED = {
    "leader-elect": "false",
    "bind-address": LOOPBACK,
    # The defaults (20 and 30 requests) would make a test wait for the daemon's own throttle.
    "kube-api-qps": "500",
    "kube-api-burst": "1000",
}


def controller_manager_flags(settings: ControlPlaneSettings, ports: Ports, keys: KeyRing, kubeconfig: Path) -> Flags:
    """Flags of kube-controller-manager: every controller, with the credentials of its own service account."""
    return (
        _UNTHROTTLED
        | _delegated(kubeconfig, keys.controller_manager, ports.controller_manager)
        | {
            "use-service-account-credentials": "true",
            "service-account-private-key-file": str(keys.service_accounts.key),
            "root-ca-file": str(keys.authority.certificate),
            "cluster-signing-cert-file": str(keys.authority.certificate),
            "cluster-signing-key-file": str(keys.authority.key),
            "allocate-node-cidrs": "true",
            "cluster-cidr": settings.pod_cidr,
            "service-cluster-ip-range": settings.service_cidr,
            "node-monitor-period": "1s",
            "node-monitor-grace-period": f"{settings.node_grace_seconds}s",
        }
    )


def apiserver_environment(settings: ControlPlaneSettings) -> dict[str, str]:
    """Variables of the Go runtime."""
    return {"GOGC": "300", "GOMEMLIMIT": "2GiB"} if settings.lavish else {}


def scheduler_flags(ports: Ports, keys: KeyRing, kubeconfig: Path) -> Flags:
    """Flags of kube-scheduler."""
    return _UNTHROTTLED | _delegated(kubeconfig, keys.scheduler, ports.scheduler)


def _delegated(kubeconfig: Path, pair: KeyFiles, port: int) -> Flags:
    names = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    serving = {"tls-cert-file": str(pair.certificate), "tls-private-key-file": str(pair.key)}
    return dict.fromkeys(names, str(kubeconfig)) | serving | {"secure-port": str(port)}


def command_line(flags: Flags, extra: tuple[str, ...] = ()) -> list[str]:
    """`--name=value` for each flag, then the extra arguments as they are."""
    return [*(f"--{name}={value}" for name, value in flags.items()), *extra]

"""What makes Services work on the node: kube-proxy for their addresses, CoreDNS for their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bed.binaries import BINARIES
from bed.control_plane import ControlPlane
from bed.node.credentials import write_kubeconfig
from bed.node.settings import NODE_ADDRESS, NODE_NAME, POD_RANGE
from bed.rest import Refused, Rest

PROXY_HEALTH_PORT = 10256
PROXY_METRICS_PORT = 10249
DNS_READY_PORT = 8181
DNS_USER = "system:coredns"
PROXY_USER = "system:kube-proxy"


def kube_proxy_command(folder: Path) -> list[str | Path]:
    """How kube-proxy is started. Assumes that the node is registered by then: kube-proxy asks for it only once."""
    return [BINARIES["kube-proxy"].path, f"--config={folder / 'kube-proxy.yaml'}"]


def coredns_command(folder: Path) -> list[str | Path]:
    """How CoreDNS is started."""
    return [BINARIES["coredns"].path, "-conf", folder / "Corefile"]


def write_service_files(plane: ControlPlane, folder: Path) -> None:
    """Everything the two read."""
    proxy, dns = folder / "kube-proxy.kubeconfig", folder / "coredns.kubeconfig"
    write_kubeconfig(plane, proxy, PROXY_USER)
    write_kubeconfig(plane, dns, DNS_USER)
    (folder / "kube-proxy.yaml").write_text(yaml.safe_dump(kube_proxy_configuration(proxy), sort_keys=False))
    (folder / "Corefile").write_text(corefile(dns))


def proxy_trouble() -> str:
    """Why kube-proxy does not say that it has seen the cluster's Services; empty when it does."""
    return _trouble(f"http://{NODE_ADDRESS}:{PROXY_HEALTH_PORT}", "/healthz")


def dns_trouble() -> str:
    """Why CoreDNS does not say that it has seen the cluster's Services; empty when it does."""
    return _trouble(f"http://{NODE_ADDRESS}:{DNS_READY_PORT}", "/ready")


def _trouble(server: str, path: str) -> str:
    try:
        Rest(server).raw("GET", path)
    except (OSError, Refused) as failure:
        return str(failure)
    return ""


def kube_proxy_configuration(kubeconfig: Path) -> dict[str, Any]:
    """kube-proxy's configuration file."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "mode": "nftables",
        "clusterCIDR": str(POD_RANGE),
        "hostnameOverride": NODE_NAME,
        "bindAddress": str(NODE_ADDRESS),
        "healthzBindAddress": f"{NODE_ADDRESS}:{PROXY_HEALTH_PORT}",
        "metricsBindAddress": f"{NODE_ADDRESS}:{PROXY_METRICS_PORT}",
        "nodePortAddresses": [f"{NODE_ADDRESS}/32"],
        # Zero leaves the machine's connection tracking settings alone.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "nftables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
    }


def corefile(kubeconfig: Path) -> str:
    """CoreDNS' configuration: the cluster's names, and a quick "no such name" for all others.

    Two blocks, since within one CoreDNS asks `template` before `kubernetes`.
    """
    return f"""cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {{
  bind {NODE_ADDRESS}
  errors
  ready {NODE_ADDRESS}:{DNS_READY_PORT}
  kubernetes cluster.local in-addr.arpa ip6.arpa {{
    kubeconfig {kubeconfig} bed
    pods insecure
    ttl 2
  }}
}}
.:53 {{
  bind {NODE_ADDRESS}
  template ANY ANY . {{
    rcode NXDOMAIN
  }}
}}
"""

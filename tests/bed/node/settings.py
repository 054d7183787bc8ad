"""Names and addresses of the real node. All of them are fixed: there is one real node per machine."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from bed.daemons import ControlPlaneSettings

NODE_NAME = "bed"
NODE_ADDRESS = IPv4Address("10.250.0.1")
"""Lives on `lo`, so it never leaves the machine; every server of the node and the API server listen here."""
POD_RANGE = IPv4Network("10.244.0.0/16")
NODE_POD_RANGE = IPv4Network("10.244.0.0/24")
SERVICE_RANGE = IPv4Network("10.96.0.0/16")
BRIDGE = "rkbed0"
BRIDGE_ADDRESS = IPv4Address("10.244.0.1")
SERVICE_LINK = "rkbed1"
"""Where the route to Services points. Nothing is behind it: kube-proxy turns a packet elsewhere, or refuses it."""
GUARD_TABLE = "raykeeper_bed"
PROXY_TABLE = "kube-proxy"
"""The name is kube-proxy's own and cannot be chosen."""

CGROUP = "raykeeper-bed"
MACHINE_FOLDER = Path("/run/raykeeper-bed")
"""What belongs to the machine and not to a run: the claim, saved sysctls, containerd's socket and volatile state."""
CONTAINERD_SOCKET = MACHINE_FOLDER / "containerd.sock"

CLAIMED_CPUS = 32
"""What the node says it has, so that unmodified samples with 1-CPU requests fit on two cores."""
CLAIMED_MEMORY = "64Gi"
"""The same for samples that ask for far more than Ray takes when it is idle. Limits and evictions stay real."""
PAUSE_IMAGE = "bed.local/pause:1"
RAY_VERSION = "2.60.0"
RAY_IMAGE = f"rayproject/ray:{RAY_VERSION}"

NODE_SETTINGS = ControlPlaneSettings(
    address=str(NODE_ADDRESS),
    secure_port=6443,
    service_cidr=str(SERVICE_RANGE),
    pod_cidr=str(POD_RANGE),
)
"""For the control plane of a real node: pods reach the API server at the node's address."""

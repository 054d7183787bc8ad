"""The kubelet and its settings: a node on a small, shared machine that cannot pull an image again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bed.binaries import BINARIES
from bed.control_plane import ControlPlane
from bed.node.credentials import write_kubeconfig
from bed.node.settings import CGROUP, CONTAINERD_SOCKET, NODE_ADDRESS, NODE_NAME
from bed.pki import Authority, KeyFiles

NODE_USER = f"system:node:{NODE_NAME}"
NODE_GROUP = "system:nodes"


def kubelet_command(folder: Path) -> list[str | Path]:
    """How the kubelet is started; its files are in `folder`."""
    return [
        BINARIES["kubelet"].path,
        f"--config={folder / 'kubelet.yaml'}",
        f"--kubeconfig={folder / 'kubelet.kubeconfig'}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={NODE_ADDRESS}",
    ]


def write_kubelet_files(plane: ControlPlane, folder: Path) -> None:
    """Everything the kubelet of `plane`'s node reads."""
    resolv_conf = folder / "pod-resolv.conf"
    resolv_conf.write_text(f"nameserver {NODE_ADDRESS}\n")
    settings = kubelet_configuration(plane.keys.authority.certificate, _serving_keys(plane, folder), resolv_conf)
    (folder / "kubelet.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    write_kubeconfig(plane, folder / "kubelet.kubeconfig", NODE_USER, [NODE_GROUP])


def kubelet_configuration(authority: Path, keys: KeyFiles, resolv_conf: Path) -> dict[str, Any]:
    """The kubelet's configuration file."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **_serving(authority, keys),
        **_pods(resolv_conf),
        **_resources(),
    }


def _serving(authority: Path, keys: KeyFiles) -> dict[str, Any]:
    """Who may ask it what, and where."""
    return {
        "address": str(NODE_ADDRESS),
        "port": 10250,
        "healthzBindAddress": str(NODE_ADDRESS),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(keys.certificate),
        "tlsPrivateKeyFile": str(keys.key),
    }


def _pods(resolv_conf: Path) -> dict[str, Any]:
    """How pods run and find each other."""
    return {
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "clusterDomain": "cluster.local",
        "clusterDNS": [str(NODE_ADDRESS)],
        "resolvConf": str(resolv_conf),
        "maxPods": 200,
        "makeIPTablesUtilChains": False,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",  # the default lies outside of what is private to the node
        "syncFrequency": "20s",
        "fileCheckFrequency": "20s",
        "nodeStatusUpdateFrequency": "5s",
        "shutdownGracePeriod": "0s",
    }


def _resources() -> dict[str, Any]:
    """Cgroups below the node's own branch; images and pods are not thrown out when the shared disk fills up."""
    return {
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "cgroupsPerQOS": True,
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],  # the machine is not the node's alone
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "imageMinimumGCAge": "10000h",
        "evictionHard": {
            "memory.available": "200Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
    }


def _serving_keys(plane: ControlPlane, folder: Path) -> KeyFiles:
    """The API server knows the kubelet by a certificate of the cluster's authority."""
    authority = Authority.load(plane.keys.authority)
    return authority.issue(NODE_USER, [NODE_GROUP], sans=[NODE_NAME, str(NODE_ADDRESS)]).write(folder, "kubelet")

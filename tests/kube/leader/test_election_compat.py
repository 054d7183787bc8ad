"""A program built on client-go and our elector take the Lease over from each other.

The program is a second kube-controller-manager, made to compete for our Lease; KubeRay's operator runs the same code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.ports import free_port
from bed.processes import Process
from bed.waiting import PATIENCE_SECONDS, wait_until
from kube.leader.replicas import QUICK, Replicas, replicas_of
from raykeeper.kube.leader.installations import LEASE_NAME, WATCH_NAMESPACES, parse_installation


@pytest.fixture
def control_plane(own_control_plane: ControlPlane) -> ControlPlane:
    """A private one: a holder that does not say what it covers would stop the replicas of all tests beside this one."""
    return own_control_plane


@pytest.fixture
def replicas(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Replicas]:
    with replicas_of(control_plane, namespace, tmp_path) as replicas:
        yield replicas


@pytest.fixture
def client_go(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Process]:
    """Not started yet. Of all controllers it only has one that finds nothing to do here."""
    flags = {
        "kubeconfig": str(control_plane.admin_kubeconfig),
        "bind-address": "127.0.0.1",
        "secure-port": str(free_port("127.0.0.1")),
        "cert-dir": str(tmp_path / "certificates"),
        "controllers": "ttl-after-finished-controller",
        "leader-elect": "true",
        "leader-elect-resource-name": LEASE_NAME,
        "leader-elect-resource-namespace": namespace,
        "leader-elect-lease-duration": "4s",
        "leader-elect-renew-deadline": "3s",
        "leader-elect-retry-period": "500ms",
    }
    argv: list[str | Path] = [binary("kube-controller-manager")]
    argv += [f"--{name}={value}" for name, value in flags.items()]
    process = Process("client-go", argv, tmp_path)
    yield process
    process.kill()


def wait_for_holder(replicas: Replicas, holder: str, timeout: float = PATIENCE_SECONDS) -> dict[str, Any]:
    """The Lease once its holder is not `holder` but somebody."""

    def held() -> bool:
        return replicas.lease()["spec"].get("holderIdentity") not in (None, "", holder)

    wait_until(f"another than {holder} holds the lease", held, timeout)
    return replicas.lease()


def test_the_lease_passes_from_client_go_to_us_and_back(
    replicas: Replicas, client_go: Process, control_plane: ControlPlane, namespace: str
) -> None:
    client_go.start()
    control_plane.wait_for(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE_NAME}")
    theirs = wait_for_holder(replicas, "ours")
    ours = replicas.start("ours", *QUICK)
    ours.wait_for("waiting for the lease")
    client_go.kill()
    ours.wait_for("working")
    taken = replicas.lease()["spec"]
    assert taken["holderIdentity"] == "ours"
    assert taken["leaseTransitions"] == theirs["spec"]["leaseTransitions"] + 1

    client_go.start()
    ours.process.stop(PATIENCE_SECONDS)
    back = wait_for_holder(replicas, "ours")
    assert back["spec"]["leaseTransitions"] == taken["leaseTransitions"] + 1
    assert back["metadata"]["annotations"][WATCH_NAMESPACES] == namespace, "client-go keeps what it does not know"
    assert parse_installation(back).covers is None, "so those words are no longer its holder's"

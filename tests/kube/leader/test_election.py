"""Leader election between real processes on a real API server, through crashes, pauses and a server out of reach."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.faults.tcp import TcpProxy
from bed.waiting import BUSY_FACTOR, PATIENCE_SECONDS, wait_until
from kube.leader.replicas import QUICK, Replica, Replicas, replicas_of, seconds_until
from raykeeper.errors import Misconfigured
from raykeeper.kube.leader.lease import ElectionSettings


@pytest.fixture(scope="module")
def control_plane(own_control_plane: ControlPlane) -> ControlPlane:
    """A control plane of this module alone: a Lease of another test would make our replicas wait or refuse."""
    return own_control_plane


@pytest.fixture
def replicas(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Replicas]:
    with replicas_of(control_plane, namespace, tmp_path) as replicas:
        yield replicas


def leader_and_standby(replicas: Replicas, *options: str) -> tuple[Replica, Replica]:
    """Two replicas, of which the first leads and writes and the second waits for the lease."""
    leader = replicas.start("leader", *options)
    leader.wait_for("working")
    standby = replicas.start("standby", *options)
    standby.wait_for("waiting for the lease")
    replicas.wait_for_writes(leader)
    return leader, standby


def assert_never_both(replicas: Replicas, old: Replica, new: Replica) -> None:
    """All writes of the old leader came before all of the new one, in the order of etcd."""
    assert max(replicas.writes_of(old)) < min(replicas.writes_of(new))


def test_after_kill_9_of_the_leader_the_other_leads_within_20_seconds(replicas: Replicas) -> None:
    leader, standby = leader_and_standby(replicas)
    leader.process.kill()
    took = seconds_until("standby writes", lambda: replicas.writes_of(standby), timeout=PATIENCE_SECONDS)
    assert took < 20 * BUSY_FACTOR
    assert_never_both(replicas, leader, standby)
    assert replicas.lease()["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("options", [(), ("--writers", "20", "--qps", "10", "--burst", "1")], ids=["idle", "queued"])
def test_a_leader_paused_past_its_lease_does_not_write_again(replicas: Replicas, options: tuple[str, ...]) -> None:
    """Also not what already waited for the rate limit when it was paused."""
    leader, standby = leader_and_standby(replicas, *QUICK, *options)
    leader.process.pause()
    replicas.wait_for_writes(standby, 3)
    leader.process.resume()
    last = leader.wait_for_end()
    assert (last["level"], last["kind"]) == ("error", "LeadershipLost")
    assert "was not renewed within 6 s" in last["msg"]
    replicas.wait_for_writes(standby, 3)
    assert_never_both(replicas, leader, standby)


def test_on_sigterm_the_lease_is_released_and_handed_over_at_once(replicas: Replicas) -> None:
    leader, standby = leader_and_standby(replicas, "--election", "90,60,2")
    begin = time.monotonic()
    leader.process.stop(PATIENCE_SECONDS)
    assert leader.lines()[-1]["msg"] == "stopped"
    wait_until("standby writes", lambda: replicas.writes_of(standby))
    assert time.monotonic() - begin < 60, "the lease ran out"
    assert_never_both(replicas, leader, standby)


def test_a_released_lease_is_as_client_go_leaves_it(replicas: Replicas) -> None:
    leader = replicas.start("leader", *QUICK)
    leader.wait_for("working")
    leader.process.stop(PATIENCE_SECONDS)
    spec = replicas.lease()["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 0)


def test_a_leader_that_cannot_reach_the_server_stops_before_its_lease_ends(
    replicas: Replicas, control_plane: ControlPlane
) -> None:
    with TcpProxy("127.0.0.1", int(control_plane.server.rpartition(":")[2])) as proxy:
        kubeconfig = control_plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")
        leader = replicas.start("leader", "--election", "60,10,2", kubeconfig=kubeconfig)
        leader.wait_for("working")
        replicas.wait_for_writes(leader)
        proxy.stall()
        begin = time.monotonic()
        last = leader.wait_for_end()
        assert time.monotonic() - begin < 60
        assert last["kind"] == "LeadershipLost"
        assert "did not answer in time" in last["msg"]


def test_a_short_outage_costs_no_leadership(replicas: Replicas, control_plane: ControlPlane) -> None:
    with TcpProxy("127.0.0.1", int(control_plane.server.rpartition(":")[2])) as proxy:
        kubeconfig = control_plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")
        leader = replicas.start("leader", *QUICK, "--pause", "3600", kubeconfig=kubeconfig)
        replicas.wait_for_writes(leader)
        proxy.refuse()
        leader.wait_for("lease not renewed")
        proxy.accept()
        replicas.wait_for_renewal()
    assert leader.process.alive


def test_what_others_wrote_into_the_lease_survives(
    replicas: Replicas, control_plane: ControlPlane, namespace: str
) -> None:
    leader = replicas.start("leader", *QUICK)
    leader.wait_for("working")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/ray-operator-leader"
    control_plane.admin.patch(path, {"metadata": {"annotations": {"team": "a"}}})
    replicas.wait_for_renewal()
    assert replicas.lease()["metadata"]["annotations"]["team"] == "a"
    assert leader.process.alive


def test_a_leader_whose_lease_was_given_to_another_stops(
    replicas: Replicas, control_plane: ControlPlane, namespace: str
) -> None:
    leader = replicas.start("leader", *QUICK)
    leader.wait_for("working")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/ray-operator-leader"
    control_plane.admin.patch(path, {"spec": {"holderIdentity": "somebody-else"}})
    assert "was taken from us, it is held by somebody-else" in leader.wait_for_end()["msg"]


def test_a_leader_whose_lease_was_deleted_makes_it_again(
    replicas: Replicas, control_plane: ControlPlane, namespace: str
) -> None:
    leader = replicas.start("leader", *QUICK)
    leader.wait_for("working")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/ray-operator-leader"
    control_plane.admin.delete(path)
    wait_until("the lease is back", lambda: control_plane.admin.answers(path))
    assert replicas.lease()["spec"]["holderIdentity"] == "leader"
    replicas.wait_for_writes(leader, 3)


@pytest.mark.parametrize(("duration", "deadline", "retry"), [(15, 15, 2), (15, 10, 9), (15, 10, 0)])
def test_settings_that_cannot_be_safe_are_refused(duration: int, deadline: float, retry: float) -> None:
    with pytest.raises(Misconfigured):
        ElectionSettings(duration, deadline, retry)

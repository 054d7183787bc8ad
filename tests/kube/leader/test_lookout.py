"""Installations as real processes in two namespaces: at most one works, and the other says why it does not."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace
from bed.waiting import wait_until
from kube.leader.replicas import QUICK, Replicas, replicas_of
from raykeeper.api.meta import ObjectKey
from raykeeper.clock import SystemClock
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.leader.installations import LEASE_NAME, Coverage, Ours
from raykeeper.kube.leader.lease import Candidate, desired_lease
from raykeeper.kube.leader.lookout import Lookout
from raykeeper.kube.metrics import KubeMetrics


@pytest.fixture
def two_namespaces(own_control_plane: ControlPlane) -> Iterator[tuple[str, str]]:
    """Namespaces of a private control plane, since an operator that covers everything concerns all other tests."""
    test = uuid.uuid4().hex[:8]
    names = (f"first-{test}", f"second-{test}")
    for name in names:
        make_namespace(own_control_plane, name)
    yield names
    for name in names:
        # Its Lease would be one more rival in the next test until the namespace is gone.
        own_control_plane.kubectl("delete", "lease", LEASE_NAME, "-n", name, "--ignore-not-found")
        own_control_plane.admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def replicas(own_control_plane: ControlPlane, two_namespaces: tuple[str, str], tmp_path: Path) -> Iterator[Replicas]:
    with replicas_of(own_control_plane, two_namespaces[0], tmp_path) as replicas:
        yield replicas


def test_a_second_installation_refuses_to_start_and_names_the_first(
    replicas: Replicas, two_namespaces: tuple[str, str]
) -> None:
    first, second = two_namespaces
    one = replicas.start("one", "--watch", "*", lease_in=first)
    one.wait_for("working")
    two = replicas.start("two", "--watch", "default", lease_in=second)
    last = two.wait_for_end()
    assert last["kind"] == "AnotherInstallation"
    assert f"runs in namespace {first} (holder one) and covers all namespaces" in last["msg"]
    assert not replicas.writes_of(two)
    assert one.process.alive


def test_installations_without_a_common_namespace_both_work(
    replicas: Replicas, two_namespaces: tuple[str, str]
) -> None:
    one = replicas.start("one", "--watch", "team-a", lease_in=two_namespaces[0])
    two = replicas.start("two", "--watch", "team-b", lease_in=two_namespaces[1])
    replicas.wait_for_writes(one)
    replicas.wait_for_writes(two)


def test_of_two_installations_started_at_once_exactly_one_stays(
    replicas: Replicas, two_namespaces: tuple[str, str]
) -> None:
    both = [
        replicas.start(name, "--watch", "*", lease_in=namespace)
        for name, namespace in zip(("one", "two"), two_namespaces, strict=True)
    ]
    wait_until("one of them ends", lambda: sum(replica.process.alive for replica in both) == 1)
    stays, yields = sorted(both, key=lambda replica: not replica.process.alive)
    stays.wait_for("working")
    assert yields.lines()[-1]["kind"] == "AnotherInstallation"
    assert not replicas.writes_of(yields)


def test_the_first_installation_gone_the_second_may_start(replicas: Replicas, two_namespaces: tuple[str, str]) -> None:
    one = replicas.start("one", *QUICK, "--watch", "*", lease_in=two_namespaces[0])
    one.wait_for("working")
    one.process.kill()
    two = replicas.start("two", *QUICK, "--watch", "*", lease_in=two_namespaces[1])
    two.wait_for("working")


async def test_where_not_all_leases_may_be_read_ours_and_the_watched_namespaces_are(
    own_control_plane: ControlPlane, two_namespaces: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = two_namespaces
    own_control_plane.kubectl("create", "role", "leases", "-n", first, "--verb=get", "--resource=leases")
    own_control_plane.kubectl("create", "rolebinding", "leases", "-n", first, "--role=leases", "--user=namespaced")
    lease = desired_lease(ObjectKey(first, LEASE_NAME), None, Candidate("one_1"), SystemClock().now())
    own_control_plane.admin.post(f"/apis/coordination.k8s.io/v1/namespaces/{first}/leases", lease)
    connection = await load_connection(own_control_plane.kubeconfig("namespaced", groups=()))
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
        lookout = Lookout(kube, Ours(second, Coverage(frozenset({first})), "two_1"), SystemClock())
        leases = await lookout.observe()
        assert [lease.record.holder for lease in leases] == ["one_1"]
    assert [record.message for record in caplog.records] == [
        "other installations outside our namespaces cannot be seen",
        "another operator does not say which namespaces it covers: make sure that none of them is ours",
    ]


@pytest.mark.parametrize(
    ("arguments", "said", "covers"),
    [
        (["--watch-namespace=team-b"], {}, Coverage(frozenset({"team-b"}))),
        (["--enable-leader-election=true"], {}, Coverage()),
        (["--config=/etc/config.yaml"], {}, None),
        (["--config=/etc/config.yaml"], {"team-c"}, Coverage(frozenset({"team-c"}))),
    ],
)
async def test_what_kuberays_operator_covers_is_read_from_its_pod_unless_the_user_says_so(
    own_control_plane: ControlPlane,
    two_namespaces: tuple[str, str],
    arguments: list[str],
    said: set[str],
    covers: Coverage | None,
) -> None:
    first, second = two_namespaces
    container = {"name": "kuberay-operator", "image": "kuberay", "command": ["/manager"], "args": arguments}
    pod = {"metadata": {"name": "kuberay-operator-6c"}, "spec": {"containers": [container]}}
    own_control_plane.admin.post(f"/api/v1/namespaces/{first}/pods", pod)
    lease = desired_lease(ObjectKey(first, LEASE_NAME), None, Candidate("kuberay-operator-6c_1"), SystemClock().now())
    own_control_plane.admin.post(f"/apis/coordination.k8s.io/v1/namespaces/{first}/leases", lease)
    others = {first: Coverage(frozenset(said))} if said else {}
    connection = await load_connection(own_control_plane.admin_kubeconfig)
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
        found = await Lookout(
            kube, Ours(second, Coverage(frozenset({"team-a"})), "me_1", others), SystemClock()
        ).observe()
    assert [installation.covers for installation in found if installation.namespace == first] == [covers]

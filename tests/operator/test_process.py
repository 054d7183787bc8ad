"""The operator as a process on a real API server: how it starts, shows itself, refuses and ends."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import TEST_SETTINGS, NewControlPlane, make_namespace
from bed.waiting import wait_until
from raykeeper.kube.controllers.controller import CANCEL_SECONDS
from raykeeper.kube.events.writer import FLUSH_SECONDS
from raykeeper.kube.leader.election import RELEASE_SECONDS, STOP_SECONDS
from raykeeper.kube.serving.server import SHUTDOWN_SECONDS as SERVING_SECONDS
from raykeeper.operator.term import SHUTDOWN_SECONDS
from support.openshift import install_routes
from support.operator_processes import OperatorProcess, Operators, operators_of

HERE = "default"
"""Namespace of the Lease: that of the administrator's kubeconfig."""


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    """Private, since an operator that covers all namespaces concerns every other test."""
    install_ray_crds(own_control_plane)
    return own_control_plane


@pytest.fixture
def operators(plane: ControlPlane, tmp_path: Path) -> Iterator[Operators]:
    with operators_of(plane, tmp_path) as operators:
        yield operators
    # The next test must not wait for a holder that was killed.
    plane.kubectl("delete", "leases", "--all-namespaces", "--field-selector=metadata.name=ray-operator-leader")


def a_raycluster(name: str) -> dict[str, object]:
    template = {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": {"headGroupSpec": {"rayStartParams": {}, "template": template}},
    }


CHART_GRACE_SECONDS = 10


def leading(operators: Operators, *flags: str) -> OperatorProcess:
    operator = operators.start(*flags)
    operator.wait_for("leading")
    return operator


def test_it_becomes_ready_and_leads_under_kuberays_lease_with_our_annotations(operators: Operators) -> None:
    operator = operators.start()
    operator.wait_ready()
    operator.wait_for("leading")
    lease = operators.lease(HERE)
    annotations = lease["metadata"]["annotations"]
    assert annotations["raykeeper.io/watch-namespaces"] == "*"
    assert annotations["raykeeper.io/holder"] == lease["spec"]["holderIdentity"]
    assert operator.ask("/healthz") == (200, "ok")
    assert operator.metric("leader_election_master_status", name="ray-operator-leader") == 1


def test_on_sigterm_it_gives_the_lease_back_and_ends_with_0(operators: Operators) -> None:
    operator = leading(operators)
    assert operator.stop() == 0
    assert operators.lease(HERE)["spec"]["holderIdentity"] == ""
    said = [line["msg"] for line in operator.lines()]
    assert said.index("lease released") < said.index("operator stopped") == len(said) - 1


def test_a_standby_is_ready_and_takes_over(operators: Operators) -> None:
    first = leading(operators)
    second = operators.start()
    second.wait_for("waiting for the lease")
    second.wait_ready()
    first.stop()
    second.wait_for("leading")


QUICK = ("--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=500ms")
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{HERE}/leases/ray-operator-leader"


def test_a_leader_whose_lease_is_taken_stands_by_and_leads_again_in_the_same_process(
    operators: Operators, plane: ControlPlane
) -> None:
    operator = leading(operators, *QUICK)
    plane.admin.patch(LEASE, {"spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 3}})
    lost = operator.wait_for("leadership lost, standing by")
    assert "it is held by somebody-else" in lost["cause"]
    wait_until("it waits for the other", lambda: operator.line("waiting for the lease"))
    assert operator.metric("leader_election_master_status", name="ray-operator-leader") == 0
    again = wait_until("it leads again", lambda: operators.lease(HERE)["spec"]["holderIdentity"] != "somebody-else")
    assert again
    plane.admin.post("/apis/ray.io/v1/namespaces/default/rayclusters", a_raycluster("second-term"))
    pods = "/api/v1/namespaces/default/pods?labelSelector=ray.io/cluster=second-term"
    wait_until("the second term makes a head", lambda: plane.admin.get(pods)["items"])
    assert operator.ask("/healthz") == (200, "ok")
    assert operator.stop() == 0
    assert operators.lease(HERE)["spec"]["holderIdentity"] == ""
    plane.admin.delete("/apis/ray.io/v1/namespaces/default/rayclusters/second-term")


def test_a_standby_has_an_empty_queue_and_a_leader_looks_at_every_cluster_once(
    operators: Operators, plane: ControlPlane
) -> None:
    names = [f"queued-{number}" for number in range(3)]
    for name in names:
        plane.admin.post("/apis/ray.io/v1/namespaces/default/rayclusters", a_raycluster(name))
    first = leading(operators)
    second = operators.start()
    second.wait_ready()
    second.wait_for("waiting for the lease")
    for priority in ("0", "-100"):
        labels = {"name": "raycluster", "controller": "raycluster", "priority": priority}
        assert second.metric("workqueue_depth", **labels) == 0
    assert second.metric("workqueue_adds_total", name="raycluster", controller="raycluster") == 0
    first.stop()
    second.wait_for("leading")
    wait_until(
        "every cluster is looked at",
        lambda: (second.metric("workqueue_adds_total", name="raycluster", controller="raycluster") or 0) >= len(names),
    )
    for name in names:
        plane.admin.delete(f"/apis/ray.io/v1/namespaces/default/rayclusters/{name}")


def test_without_election_it_works_and_leaves_no_lease(operators: Operators, plane: ControlPlane) -> None:
    operator = operators.start("--enable-leader-election=false", "--enable-metrics")
    operator.wait_ready()
    assert not plane.admin.get("/apis/coordination.k8s.io/v1/namespaces/default/leases")["items"]
    assert operator.stop() == 0


def test_without_metrics_about_ray_objects_the_address_that_kuberays_probes_ask_answers(operators: Operators) -> None:
    """What `metrics.enabled=false` of KubeRay's chart becomes; its probes ask for /metrics all the same."""
    operator = leading(operators, "--enable-metrics=false")
    status, text = operator.ask("/metrics")
    assert status == 200
    assert 'controller_runtime_reconcile_total{controller="raycluster"' in text
    assert "kuberay_cluster_info" not in text


def test_a_second_installation_refuses_and_names_the_first(operators: Operators, plane: ControlPlane) -> None:
    make_namespace(plane, "another-place")
    leading(operators)
    second = operators.start("--leader-election-namespace=another-place")
    assert second.wait_for_end() == 1
    last = second.lines()[-1]
    assert f"another operator runs in namespace {HERE}" in last["error"]
    assert "covers all namespaces" in last["error"]


def test_installations_that_watch_other_namespaces_work_side_by_side(operators: Operators, plane: ControlPlane) -> None:
    make_namespace(plane, "beside")
    leading(operators, "--watch-namespace=team-a")
    second = leading(operators, "--watch-namespace=team-b,team-c", "--leader-election-namespace=beside")
    assert second.process.poll() is None
    assert operators.lease("beside")["metadata"]["annotations"]["raykeeper.io/watch-namespaces"] == "team-b,team-c"


def test_metrics_tell_of_clusters_of_requests_and_of_the_process(operators: Operators, plane: ControlPlane) -> None:
    created = plane.admin.post("/apis/ray.io/v1/namespaces/default/rayclusters", a_raycluster("shown"))
    identity = {"name": "shown", "namespace": "default", "uid": created["metadata"]["uid"]}
    operator = leading(operators, "--enable-metrics")
    assert operator.metric("kuberay_cluster_info", **identity, owner_kind="None") == 1
    assert operator.metric("kuberay_cluster_condition_provisioned", **identity, condition="false") == 1
    assert (operator.metric("process_resident_memory_bytes") or 0) > 0
    assert {sample.labels["method"] for sample in operator.samples("rest_client_requests_total")} >= {"GET", "POST"}
    plane.admin.delete("/apis/ray.io/v1/namespaces/default/rayclusters/shown")
    wait_until("the series goes with the cluster", lambda: not operator.samples("kuberay_cluster_info"))


def test_without_enable_metrics_nothing_is_told_of_clusters(operators: Operators) -> None:
    assert "kuberay_" not in leading(operators).ask("/metrics")[1]


def test_flags_without_effect_are_told_once(operators: Operators) -> None:
    operator = leading(operators, "--forced-cluster-upgrade")
    warnings = {line["msg"]: line for line in operator.lines() if line["level"] == "warning"}
    assert warnings["flags without effect"]["flags"] == ["--forced-cluster-upgrade"]
    assert len(warnings) == 1


def test_the_log_goes_to_a_file_too_in_its_own_shape(operators: Operators, tmp_path: Path) -> None:
    file = tmp_path / "operator.txt"
    operator = leading(operators, f"--log-file-path={file}", "--log-file-encoder=console")
    assert operator.stop() == 0
    assert len(file.read_text().splitlines()) == len(operator.lines())
    assert "\tINFO\traykeeper.operator\toperator starts\t{" in file.read_text()


def test_it_starts_by_the_name_manager_with_go_spellings(operators: Operators, tmp_path: Path) -> None:
    script = tmp_path / "manager"
    script.symlink_to(Path(sys.executable).with_name("raykeeper"))
    gates = "-feature-gates=RayClusterStatusConditions=true,RayServiceIncrementalUpgrade=true,RayCronJob=false"
    operator = operators.start("-enable-leader-election=true", "--qps", "50", gates, "", command=[script])
    operator.wait_ready()


def test_an_address_in_use_is_named_and_ends_it_with_2(operators: Operators) -> None:
    taken = leading(operators).wait_for("listening")["addresses"][0][1]
    second = operators.start(f"--metrics-addr=127.0.0.1:{taken}")
    assert second.wait_for_end() == 2
    assert second.lines()[-1]["error"].startswith(f"metrics address='127.0.0.1:{taken}' cannot be used: cannot listen")


def test_an_api_server_out_of_reach_ends_it_with_1_and_is_named(operators: Operators, plane: ControlPlane) -> None:
    operator = operators.start(kubeconfig=plane.kubeconfig(server="https://127.0.0.1:9"))
    assert operator.wait_for_end(120) == 1
    assert "https://127.0.0.1:9" in operator.lines()[-1]["error"]


def test_a_role_that_lacks_something_keeps_it_from_ready_which_says_what(
    operators: Operators, plane: ControlPlane
) -> None:
    operator = operators.start("--enable-metrics", kubeconfig=plane.kubeconfig("nobody", groups=()))
    expected = 'is forbidden: User "nobody" cannot watch resource'  # lists are streamed as part of a watch
    wait_until("it says what is forbidden", lambda: expected in operator.ask("/readyz")[1])
    assert operator.ask("/readyz")[0] == 500
    assert operator.ask("/healthz")[0] == 200


def test_openshift_is_known_by_its_routes(operators: Operators, plane: ControlPlane) -> None:
    assert leading(operators).wait_for("operator starts")["openshift"] is False
    install_routes(plane)
    try:
        assert operators.start().wait_for("operator starts")["openshift"] is True
    finally:
        plane.admin.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/routes.route.openshift.io")


def test_with_nothing_to_do_it_only_renews_its_lease(operators: Operators) -> None:
    operator = leading(operators, "--enable-metrics")
    process = psutil.Process(operator.process.pid)
    wait_until("it is settled, the lease being renewed", lambda: requests_of(operator)["PUT"])
    told, before, first = len(operator.lines()), process.cpu_times(), requests_of(operator)
    wait_until("the lease is renewed four times", renewed(operators, times=4))
    after = process.cpu_times()
    # Eight seconds, of which it takes a hundredth of this.
    assert after.user + after.system - before.user - before.system < 4.0
    assert (requests_of(operator) - first).keys() == {"PUT"}
    assert len(operator.lines()) == told


def renewed(operators: Operators, times: int) -> Callable[[], bool]:
    """Whether the lease was renewed so often since the first look. The API server is asked, not the operator."""
    seen: set[str] = set()

    def look() -> bool:
        seen.add(operators.lease(HERE)["spec"]["renewTime"])
        return len(seen) > times

    return look


def requests_of(operator: OperatorProcess) -> Counter[str]:
    """How many requests it sent, by method; PUT is the Lease."""
    count: Counter[str] = Counter()
    for sample in operator.samples("rest_client_requests_total"):
        count[sample.labels["method"]] += int(sample.value)
    return count


def test_without_the_crds_it_says_so_waits_and_goes_on_when_they_come(
    new_control_plane: NewControlPlane, tmp_path: Path
) -> None:
    bare = new_control_plane(TEST_SETTINGS)
    with operators_of(bare, tmp_path) as operators:
        operator = operators.start()
        assert operator.wait_for("waiting for custom resource definitions")["missing"] == [
            "rayclusters.ray.io",
            "rayjobs.ray.io",
            "rayservices.ray.io",
            "raycronjobs.ray.io",
        ]
        status, body = operator.ask("/readyz")
        assert (status, "waits for custom resource definitions" in body) == (500, True)
        install_ray_crds(bare)
        operator.wait_for("leading")


def test_the_end_fits_into_the_ten_seconds_that_kuberays_chart_gives_it() -> None:
    """Even where a reconcile hangs, Events cannot be written, and the API server does not take the lease back."""
    controllers = SHUTDOWN_SECONDS + CANCEL_SECONDS
    assert controllers + FLUSH_SECONDS + RELEASE_SECONDS + SERVING_SECONDS < CHART_GRACE_SECONDS
    assert controllers + FLUSH_SECONDS < STOP_SECONDS, "the election waits until then for its work to end"

"""Dashboards and alerts that were written for KubeRay find every series they ask for, under the same labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.kuberay import kuberay_on
from bed.kwok import Kwok
from bed.waiting import wait_until
from support.operator_processes import OperatorProcess, operators_of
from support.raycluster_scene import a_group, a_raycluster

pytestmark = pytest.mark.interop
OF_THE_LANGUAGE: Final = ("go_", "process_", "python_")
DIFFERENCES: Final = frozenset(
    {
        "certwatcher_read_certificate",
        "certwatcher_read_certificate_errors",
        "controller_runtime_conversion_webhook_panics",
        "controller_runtime_webhook_panics",
    }
)
"""Families of KubeRay that are not here: they are about webhooks, of which there are none."""
CLUSTERS: Final = "/apis/ray.io/v1/namespaces/default/rayclusters"


class Family(NamedTuple):
    """What a query depends on."""

    kind: str
    labels: frozenset[frozenset[str]]
    """The names of labels that its series carry."""
    controllers: frozenset[str]
    buckets: tuple[float, ...]

    def answers_for(self, other: Family) -> bool:
        """Whether whoever asks for the other's series finds them here. RayCronJobs are on, which makes one more."""
        return _of_any_controller(self) == _of_any_controller(other) and self.controllers >= other.controllers


def _of_any_controller(family: Family) -> Family:
    return family._replace(controllers=frozenset())


def families(text: str) -> dict[str, Family]:
    found: dict[str, Family] = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(OF_THE_LANGUAGE) or not family.samples:
            continue
        labels = [sample.labels for sample in family.samples]
        bounds = dict.fromkeys(float(f"{float(one['le']):.9g}") for one in labels if "le" in one)
        found[family.name] = Family(
            family.type,
            frozenset(frozenset(one) - {"le"} for one in labels),
            frozenset(one["controller"] for one in labels if "controller" in one),
            tuple(bounds),
        )
    return found


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    install_ray_crds(own_control_plane)
    Kwok(own_control_plane).up(nodes=1)
    own_control_plane.admin.post(CLUSTERS, a_raycluster(a_group("small", 1)))
    return own_control_plane


@pytest.fixture(scope="module")
def theirs(plane: ControlPlane) -> dict[str, Family]:
    """What KubeRay's operator tells once it has a cluster that is ready."""
    with kuberay_on(plane) as kuberay:
        operator = kuberay.start("--enable-metrics=true")
        wait_until("the cluster is ready", lambda: is_ready(plane), timeout=120)
        return families(operator.metrics())


@pytest.fixture(scope="module")
def ours(plane: ControlPlane, theirs: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Family]]:
    with operators_of(plane, tmp_path_factory.mktemp("ours")) as operators:
        operator = operators.start("--enable-metrics=true")
        operator.wait_for("leading", timeout=120)
        wait_until("it has looked at the cluster", lambda: has_looked(operator), timeout=120)
        yield families(operator.ask("/metrics")[1])


def is_ready(plane: ControlPlane) -> bool:
    return any(one.get("status", {}).get("state") == "ready" for one in plane.admin.get(CLUSTERS)["items"])


def has_looked(operator: OperatorProcess) -> bool:
    done = operator.samples("controller_runtime_reconcile_total")
    return any(sample.value for sample in done if sample.labels["controller"] == "raycluster")


def test_every_family_has_the_same_type_labels_and_buckets(theirs: dict[str, Family], ours: dict[str, Family]) -> None:
    missing = {name for name in theirs if name not in ours}
    assert missing == DIFFERENCES
    differing = [name for name in theirs if name in ours and not ours[name].answers_for(theirs[name])]
    assert not differing, "\n".join(f"{name}: {theirs[name]} here {ours[name]}" for name in differing)

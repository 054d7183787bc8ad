"""What is true of every chart, each rendered by Helm over its table of values and read by a real API server."""

from __future__ import annotations

import copy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.crds import install_cert_manager_crds, install_monitoring_crds, install_ray_crds
from bed.fixtures import make_namespace
from bed.gateway_api import install_gateway_crds
from bed.helm import helm
from support.golden import AssertGolden, files_without_test
from support.helm_charts import Chart, Json, assert_accepted, without_random_tokens
from support.openshift import install_routes
from tools.charts import CLUSTER_VALUES, NAMES

CHARTS: Final = {name: Chart(name) for name in NAMES}
CASES: Final = [(name, case) for name, chart in CHARTS.items() for case in chart.cases]
OPEN_MAPS: Final = (
    "additionalLabels",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "podSecurityContext",
    "securityContext",
)
WITH_THE_SAME_CLUSTER: Final[dict[str, Json]] = {
    "ray-job": {"entrypoint": "python a.py"},
    "ray-service": {"serveConfigV2": "applications: []"},
}
"""Charts with a cluster inside of what they make, and the least that they need."""
CLUSTER_KEYS: Final = frozenset(
    yaml.safe_load((CHARTS["ray-cluster"].folder / "values.yaml").read_text().partition(CLUSTER_VALUES)[2])
)


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_chart_renders_what_the_golden_file_shows(name: str, case: str, assert_golden: AssertGolden) -> None:
    chart = CHARTS[name]
    shown = without_random_tokens(chart.rendered(case), chart.cases[case])
    assert_golden(chart.golden / f"{case}.yaml", shown)


@pytest.mark.parametrize("name", NAMES)
def test_every_golden_file_is_compared(name: str) -> None:
    assert files_without_test(CHARTS[name].golden, CHARTS[name].cases) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_value_is_in_a_golden_file(name: str) -> None:
    given = [case.get("values", {}) for case in CHARTS[name].cases.values()]
    values = yaml.safe_load((CHARTS[name].folder / "values.yaml").read_text())
    if name in WITH_THE_SAME_CLUSTER:  # whose clusters are compared with those of ray-cluster
        values = {key: value for key, value in values.items() if key not in CLUSTER_KEYS}
    values.pop("additionalWorkerGroups", None)  # as those of `worker`
    assert list(_not_given(values, given)) == []


def _not_given(values: Json, given: list[Any]) -> Iterator[str]:
    for key, default in values.items():
        here = [one[key] for one in given if isinstance(one, dict) and key in one]
        if not here:
            yield key
        elif isinstance(default, dict) and key not in OPEN_MAPS:
            yield from (f"{key}.{name}" for name in _not_given(default, here))


def cluster_values(case: str) -> Json:
    """What a case of ray-cluster says about the cluster itself."""
    values = CHARTS["ray-cluster"].cases[case].get("values", {})
    return {key: value for key, value in values.items() if key in CLUSTER_KEYS}


def cluster_parts(name: str, values: Json) -> tuple[Any, list[Json]]:
    """The spec of the RayCluster that a chart makes, wherever it stands, and what it makes beside; without its name."""
    documents = CHARTS[name].render({"fullnameOverride": "same", "nameOverride": "same", **values}, release="same")
    (owner,) = (item for item in documents if item["apiVersion"] == "ray.io/v1")
    spec = owner["spec"].get("rayClusterSpec") or owner["spec"].get("rayClusterConfig") or owner["spec"]
    beside = [item for item in documents if item is not owner]
    groups = [group["template"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]
    for item in (*beside, *groups):
        item["metadata"].get("labels", {}).pop("helm.sh/chart", None)
    return spec, beside


@pytest.mark.parametrize("case", [case for case in CHARTS["ray-cluster"].cases if cluster_values(case)])
def test_a_job_and_a_service_get_the_cluster_that_the_chart_ray_cluster_makes(case: str) -> None:
    values = cluster_values(case)
    alone = cluster_parts("ray-cluster", values)
    for name, needed in WITH_THE_SAME_CLUSTER.items():
        assert cluster_parts(name, values | needed) == alone, name


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_passes_lint(name: str) -> None:
    CHARTS[name].lint()


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    """An API server that knows every kind and every namespace of the tables."""
    cases = [case for chart in CHARTS.values() for case in chart.cases.values()]
    watched = {name for case in cases for name in case.get("values", {}).get("watchNamespace") or ()}
    others = {"ray-team-a", "ray-team-b", "monitoring"}
    for name in sorted((watched | others | {case.get("namespace", "default") for case in cases}) - {"default"}):
        make_namespace(own_control_plane, name)
    install_ray_crds(own_control_plane)
    install_monitoring_crds(own_control_plane)
    install_gateway_crds(own_control_plane)
    install_cert_manager_crds(own_control_plane)
    install_routes(own_control_plane)
    return own_control_plane


@pytest.mark.parametrize("name", NAMES)
def test_a_real_api_server_takes_all_that_is_rendered(name: str, plane: ControlPlane) -> None:
    objects: list[Json] = []
    for case in CHARTS[name].cases:
        objects += [item for item in copy.deepcopy(CHARTS[name].rendered(case)) if item not in objects]
    for number, item in enumerate(objects):
        item["metadata"]["name"] += f"-{number}"  # one request for all of them
    assert_accepted(plane, objects)


LEAST: Final[dict[str, Json]] = {**WITH_THE_SAME_CLUSTER, "ray-history-server": {"store": {"url": "s3://history"}}}
"""What a chart cannot do without."""


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_renders_without_any_of_its_values(name: str, tmp_path: Path) -> None:
    """As after `helm upgrade --reuse-values`, which knows nothing of values that came with a later version."""
    shutil.copytree(CHARTS[name].folder, tmp_path / name)
    (tmp_path / name / "values.yaml").write_text("{}\n")
    done = subprocess.run(
        [helm(), "template", name, tmp_path / name, "--values", "-"],
        input=yaml.safe_dump(LEAST.get(name, {})),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_common_labels_and_annotations_are_on_everything_that_a_chart_makes(name: str) -> None:
    labels, annotations = {"team": "a", "cost-centre": "42"}, {"contact": "ray@example.com"}
    for item in CHARTS[name].rendered("common"):
        metadata = item["metadata"]
        assert labels.keys() <= metadata["labels"].keys(), item
        assert annotations.items() <= metadata["annotations"].items(), item


@pytest.mark.parametrize("way", [("--server-side", "--force-conflicts"), ()], ids=["server-side", "client-side"])
def test_the_folder_of_the_crds_can_be_applied_by_kubectl_alone(way: tuple[str, ...], plane: ControlPlane) -> None:
    """Also without --server-side, for which KubeRay's are too large."""
    said = plane.kubectl("apply", *way, "-k", str(CHARTS["kuberay-operator"].folder))
    assert said.count("customresourcedefinition.apiextensions.k8s.io/") == 4

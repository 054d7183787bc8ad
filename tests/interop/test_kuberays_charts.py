"""KubeRay's own charts as the oracle: their suites pass on ours, their values are taken, the same objects are made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
import yaml

from bed.binaries import binary
from bed.golang import module_folder
from bed.helm import helm
from bed.kuberay import VERSION
from support.helm_charts import Chart, Json

pytestmark = pytest.mark.interop

OPERATOR, API_SERVER, CLUSTER = Chart("kuberay-operator"), Chart("kuberay-apiserver"), Chart("ray-cluster")
CHARTS: Final = (OPERATOR, API_SERVER, CLUSTER)
REVIEWED: Final[dict[str, dict[str, str]]] = {
    OPERATOR.name: {
        "Should include batchScheduler configuration": "sets enabled and name, with which the operator does not start",
        "Should add environment variables if `env` is set": "has valueFrom.secretRef, which is no field of Kubernetes",
    },
    API_SERVER.name: {},
    CLUSTER.name: {
        f"Should add env specified by `common.containerEnv` and `{group}.containerEnv`": "has valueFrom.secretRef"
        for group in ("head", "worker", "additionalWorkerGroups.smallGroup")
    },
}
"""Cases of KubeRay's suites that fail on our charts, and why they should."""


def theirs(chart: Chart) -> Path:
    return module_folder("github.com/ray-project/kuberay", VERSION) / "helm-chart" / chart.name


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_the_suites_of_kuberays_charts_pass_on_ours(chart: Chart, tmp_path: Path) -> None:
    copy, report = tmp_path / chart.name, tmp_path / "report.xml"
    shutil.copytree(chart.folder, copy, ignore=shutil.ignore_patterns("tests"))
    shutil.copytree(theirs(chart) / "tests", copy / "tests")
    asked = ["--strict", "--file=tests/**/*_test.yaml", "--output-type=JUnit", f"--output-file={report}"]
    subprocess.run([binary("helm-unittest"), *asked, copy], capture_output=True, check=False)
    cases = list(ElementTree.parse(report).iter("testcase"))
    assert len(cases) > 30
    failed = {
        str(case.get("name")) for case in cases if case.find("failure") is not None or case.find("error") is not None
    }
    assert failed == REVIEWED[chart.name].keys()


def values_of(chart: Chart) -> Json:
    """KubeRay's defaults, without its image, which cannot be used."""
    values: Json = yaml.safe_load((theirs(chart) / "values.yaml").read_text())
    if chart is not CLUSTER:
        del values["image"]
    return values


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_kuberays_default_values_are_taken_as_they_are(chart: Chart) -> None:
    assert chart.render(values_of(chart))


def rendered_by_kuberay(chart: Chart, case: Json) -> list[Json]:
    release, namespace = case.get("release") or chart.name, case.get("namespace", "default")
    done = subprocess.run(
        [helm(), "template", release, theirs(chart), "--namespace", namespace, "--values", "-"],
        input=yaml.safe_dump(case.get("values", {})),
        capture_output=True,
        text=True,
        check=True,
    )
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def identity(item: Json) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


OF_KUBERAY: Final = (
    *(
        (OPERATOR, case)
        for case in ("defaults", "teams", "tenants", "gpu", "development", "rbac-namespaces", "rbac-off")
    ),
    *((OPERATOR, case) for case in ("rbac-own-namespace", "rbac-elsewhere", "three-replicas", "monitored", "names")),
    *((OPERATOR, case) for case in ("scheduler-volcano", "scheduler-legacy", "configuration", "foreign-account")),
    *(
        (API_SERVER, case)
        for case in ("no-proxy", "tenants", "cors", "one-namespace", "no-roles", "full-name", "route")
    ),
    *((CLUSTER, case) for case in ("defaults", "development", "team", "gpu", "fault-tolerance", "full-name")),
    *((CLUSTER, case) for case in ("all-head-values", "all-worker-values", "runtime-class", "no-workers")),
)
"""Cases whose values KubeRay's charts know."""


@pytest.mark.parametrize(("chart", "case"), OF_KUBERAY, ids=lambda each: getattr(each, "name", each))
def test_the_same_objects_have_the_same_names(chart: Chart, case: str) -> None:
    ours = {identity(item): item for item in chart.rendered(case)}
    them = {identity(item): item for item in rendered_by_kuberay(chart, chart.cases[case])}
    assert them.keys() <= ours.keys()
    added = {kind for kind, _, name in ours.keys() - them.keys() if not name.endswith("-crds")}
    assert added <= {"Secret", "ClusterRole"}, "a token, and viewers and editors of RayCronJobs"
    for key, item in them.items():
        assert _selectors(item) == _selectors(ours[key]), "a selector can never be changed"


def _selectors(item: Json) -> Any:
    """How a Deployment or Service finds its pods, and what its containers and ports are called."""
    if item["kind"] == "Service":
        return item["spec"]["selector"], [port["name"] for port in item["spec"]["ports"]]
    if item["kind"] == "Deployment":
        containers = item["spec"]["template"]["spec"]["containers"]
        return item["spec"]["selector"], sorted(container["name"] for container in containers)
    return None


def arguments(documents: list[Json]) -> list[str]:
    (deployment,) = (item for item in documents if item["kind"] == "Deployment")
    (container, *_) = deployment["spec"]["template"]["spec"]["containers"]
    return [word for word in container.get("args", []) if not word.startswith("--feature-gates=")]


@pytest.mark.parametrize("case", [case for chart, case in OF_KUBERAY if chart is OPERATOR])
def test_the_operator_gets_the_same_arguments(case: str) -> None:
    assert arguments(OPERATOR.rendered(case)) == arguments(rendered_by_kuberay(OPERATOR, OPERATOR.cases[case]))


REQUESTS: Final = "spec.headGroupSpec.template.spec.containers.0.resources.requests."
FOLLOWS_THE_LIMIT: Final = {f"{REQUESTS}cpu", f"{REQUESTS}memory"}
RAYCLUSTERS: Final[dict[str, set[str]]] = {
    "defaults": set(),
    "development": set(),
    "gpu": set(),
    "full-name": set(),
    "no-workers": set(),
    "team": FOLLOWS_THE_LIMIT,
    "fault-tolerance": FOLLOWS_THE_LIMIT,
}
"""Cases, with the fields that are another than KubeRay's: its requests would be above the limits."""


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Every single value by its path."""
    parts = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else None
    if parts is None:
        return {path.removeprefix("."): value}
    return {place: leaf for key, part in parts for place, leaf in leaves(part, f"{path}.{key}").items()}


@pytest.mark.parametrize("case", RAYCLUSTERS)
def test_the_raycluster_is_kuberays(case: str) -> None:
    (ours,), (them,) = CLUSTER.rendered(case), rendered_by_kuberay(CLUSTER, CLUSTER.cases[case])
    here, there = leaves(ours), leaves(them)
    differing = {path for path in here.keys() | there.keys() if here.get(path) != there.get(path)}
    assert {path for path in differing if "helm.sh/chart" not in path} == RAYCLUSTERS[case]

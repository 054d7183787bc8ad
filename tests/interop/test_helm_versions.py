"""Helm 3.22 and 4.3 render the charts as the golden files show them."""

from __future__ import annotations

import functools
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bed.binaries import KUBERNETES, binary
from support.helm_charts import Chart, without_random_tokens
from tools.charts import NAMES

pytestmark = pytest.mark.interop

HELMS: Final = ("helm-3", "helm-4")


def rendered(helm: Path, chart: Chart, case: Any) -> Any:
    """What this Helm makes of one case of the chart's table."""
    release, namespace = case.get("release") or chart.name, case.get("namespace", "default")
    done = subprocess.run(
        [
            helm,
            "template",
            release,
            chart.folder,
            "--namespace",
            namespace,
            "--kube-version",
            KUBERNETES,
            "--values",
            "-",
        ],
        input=yaml.safe_dump(case.get("values", {})),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]


def in_any_order(documents: Any) -> list[Any]:
    def place(item: Any) -> tuple[str, str, str]:
        return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]

    return sorted(documents, key=place)


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_chart_is_rendered_alike(name: str, helm: str) -> None:
    chart = Chart(name)
    render = functools.partial(rendered, binary(helm), chart)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (case, wanted), documents in zip(chart.cases.items(), pool.map(render, chart.cases.values()), strict=True):
            golden = yaml.load((chart.golden / f"{case}.yaml").read_text(), yaml.CSafeLoader)
            shown = without_random_tokens(documents, wanted)
            assert in_any_order(shown) == in_any_order(golden), case


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_chart_passes_lint(name: str, helm: str) -> None:
    done = subprocess.run([binary(helm), "lint", "--strict", Chart(name).folder], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("helm", HELMS)
def test_a_wrong_value_is_named(helm: str) -> None:
    chart = Chart("ray-cluster")
    with pytest.raises(AssertionError, match=r"worker.replica: there is no such value; did you mean worker.replicas\?"):
        rendered(binary(helm), chart, {"values": {"worker": {"replica": 2}}})

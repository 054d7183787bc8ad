"""Alerts and dashboards ask for metrics that our programs have, in a language that Prometheus reads."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

import bed
from bed.pinned import installed
from raykeeper.apiserver.metrics import ApiMetrics
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.history.metrics import HistoryMetrics
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.operator.metrics import RayClusterCollector, new_registry
from support.helm_charts import Chart, Json
from tools.dashboards import CHARTS, DASHBOARDS, WITH_MONITORING, alerts

PINS: Final = Path(bed.__path__[0]) / "requirements-promql.txt"
OF_PROMETHEUS: Final = {"up"}
_GRAFANA: Final = {"$__rate_interval": "5m", "$job": ".*", "$SessionName": ".*"}


@pytest.fixture(scope="module")
def promql() -> Any:
    """A parser of Prometheus' language."""
    sys.path.insert(0, str(installed(PINS, "PromQL")))
    try:
        return importlib.import_module("promql_parser")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def exported() -> set[str]:
    """The names of all series of our programs."""
    registry = new_registry()
    KubeMetrics(registry)
    registry.register(RayClusterCollector([]))
    collectors = CollectorRegistry()
    CollectorMetrics(collectors)
    history = HistoryMetrics()
    ObserverMetrics(history.registry)
    names = OF_PROMETHEUS.copy()
    for each in (registry, collectors, history.registry, ApiMetrics([]).registry):
        for metric in each.collect():
            names |= {metric.name, f"{metric.name}_total", f"{metric.name}_bucket"}
    return names


def dashboard(name: str) -> Json:
    return dict(json.loads((CHARTS / DASHBOARDS[name]).read_text()))


def panels(name: str) -> Iterator[Json]:
    return (panel for panel in dashboard(name)["panels"] if panel["type"] != "row")


def queries(name: str) -> Iterator[str]:
    """Of the dashboard, as Grafana asks them."""
    for panel in panels(name):
        for target in panel["targets"]:
            query = target["expr"]
            for variable, value in _GRAFANA.items():
                query = query.replace(variable, value)
            yield query


ALERTS: Final = [alert["expr"].replace("TARGET", 'job="a"') for chart in WITH_MONITORING for alert in alerts(chart)]
QUERIES: Final = [*ALERTS, *(query for name in DASHBOARDS for query in queries(name))]
OF_RAY: Final = frozenset(queries("ray-resources"))
"""By Ray's own metrics, whose names a real Ray is asked for elsewhere."""


@pytest.mark.parametrize("query", QUERIES)
def test_prometheus_can_read_a_query(query: str, promql: Any) -> None:
    promql.parse(query)


@pytest.mark.parametrize("query", [query for query in QUERIES if query not in OF_RAY])
def test_a_query_asks_for_metrics_that_there_are(query: str, exported: set[str]) -> None:
    bare = re.sub(r'\{[^}]*\}|\[[^]]*\]|"[^"]*"|by \([^)]*\)', " ", query)
    asked = {word for word in re.findall(r"[a-z][a-z0-9_]+", bare) if "_" in word or word in OF_PROMETHEUS}
    asked -= {"histogram_quantile"}
    assert asked
    assert asked <= exported


@pytest.mark.parametrize("chart", WITH_MONITORING)
def test_every_alert_says_what_is_wrong_and_what_to_do(chart: str) -> None:
    for alert in alerts(chart):
        assert set(alert["annotations"]) == {"summary", "description", "runbook"}, alert["alert"]
        assert alert["labels"]["severity"] in ("critical", "warning", "info")
        assert "\n" not in alert["annotations"]["runbook"]


def test_alerts_have_different_names() -> None:
    names = [alert["alert"] for chart in WITH_MONITORING for alert in alerts(chart)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_do_not_cover_each_other(name: str) -> None:
    taken = [
        (place["x"] + column, place["y"] + line)
        for place in (panel["gridPos"] for panel in dashboard(name)["panels"])
        for column in range(place["w"])
        for line in range(place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(column for column, _ in taken) < 24


def test_alerts_are_about_the_release_alone() -> None:
    documents = Chart("kuberay-operator").render(
        {"metrics": {"prometheusRule": {"enabled": True}}}, namespace="ray-system", release="mine"
    )
    (rule,) = (item for item in documents if item["kind"] == "PrometheusRule")
    text = json.dumps(rule)
    assert "TARGET" not in text
    assert "NAMESPACE" not in text
    assert 'namespace=\\"ray-system\\"' in text

"""Every alert fires when it should and stays quiet when it should not, by Prometheus' own `promtool`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from charts.alert_cases import ALERT_CASES, AlertCase, Series
from support.helm_charts import Chart, Json
from tools.dashboards import WITH_MONITORING, alerts

NAMESPACE: Final = "ray-system"
ENABLED: Final[Mapping[str, Json]] = {
    "kuberay-operator": {"metrics": {"prometheusRule": {"enabled": True}}},
    "kuberay-apiserver": {"metrics": {"prometheusRule": {"enabled": True}}},
    "ray-history-server": {"store": {"url": "gs://history"}, "monitoring": {"prometheusRule": {"enabled": True}}},
}
SERVICES: Final = {
    "kuberay-operator": "kuberay-operator",
    "kuberay-apiserver": "kuberay-apiserver-service",
    "ray-history-server": "ray-history-server",
}


def rendered_rules(chart: str) -> Json:
    """The alerts as the chart installs them."""
    documents = Chart(chart).render(ENABLED[chart], namespace=NAMESPACE, release=chart)
    (rule,) = (item for item in documents if item["kind"] == "PrometheusRule")
    return dict(rule["spec"])


def rules_by_name(rules: Json) -> dict[str, Json]:
    return {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}


def run(program: Path, *arguments: str, folder: Path) -> None:
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert set(ALERT_CASES) == {alert["alert"] for chart in WITH_MONITORING for alert in alerts(chart)}


@pytest.mark.parametrize("chart", WITH_MONITORING)
def test_alerts_fire_when_they_should_and_stay_quiet_when_they_should_not(
    chart: str, promtool: Path, tmp_path: Path
) -> None:
    rules = rendered_rules(chart)
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    tests = [*_tests(rules_by_name(rules), {"job": SERVICES[chart], "namespace": NAMESPACE})]
    whole = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(whole))
    run(promtool, "check", "rules", "rules.yaml", folder=tmp_path)
    run(promtool, "test", "rules", "tests.yaml", folder=tmp_path)


def _tests(rules: Mapping[str, Json], target: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name, rule in rules.items():
        case = ALERT_CASES[name]
        yield _test(name, case, case.fires, target, [_expected(rule, case, target)])
        yield _test(name, case, case.stays_quiet, target, [])


def _test(name: str, case: AlertCase, series: Series, target: Mapping[str, str], expected: list[Json]) -> Json:
    labels = ",".join(f'{label}="{value}"' for label, value in target.items())
    return {
        "interval": "1m",
        "input_series": [{"series": one.replace("TARGET", labels), "values": values} for one, values in series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": name, "exp_alerts": expected}],
    }


def _expected(rule: Json, case: AlertCase, target: Mapping[str, str]) -> Json:
    labels = {**case.labels, **(target if case.has_target else {}), **rule["labels"]}
    return {
        "exp_labels": labels,
        "exp_annotations": {k: _told(text, labels) for k, text in rule["annotations"].items()},
    }


def _told(text: str, labels: Mapping[str, str]) -> str:
    for name, value in labels.items():
        text = text.replace(f"{{{{ $labels.{name} }}}}", value)
    return text

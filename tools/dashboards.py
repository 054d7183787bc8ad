"""The Grafana dashboards of the charts, made from short lists of panels, and the page about their alerts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from raykeeper.api.meta import JSON

ROOT: Final = Path(__file__).parent.parent
CHARTS: Final = ROOT / "helm-chart"
PANELS: Final = Path(__file__).parent / "panels"
WITH_MONITORING: Final = ("kuberay-operator", "kuberay-apiserver", "ray-history-server")
DASHBOARDS: Final = {
    "kuberay-operator": "kuberay-operator/monitoring/dashboard.json",
    "kuberay-apiserver": "kuberay-apiserver/monitoring/dashboard.json",
    "ray-history-server": "ray-history-server/monitoring/dashboard.json",
    "ray-resources": "ray-history-server/monitoring/resources.json",
}
"""Where the dashboard of each list of panels is, below the charts."""
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3  # Grafana's grid has 24 columns
_SELECTOR: Final = 'job=~"$job"'
_OF_SESSION: Final = 'SessionName=~"$SessionName"'
_SOURCE: Final[JSON] = {"type": "prometheus", "uid": "$source"}


def dashboard(name: str) -> JSON:
    """The dashboard that a list of panels makes, as Grafana imports it."""
    wanted = yaml.safe_load((PANELS / f"{name}.yaml").read_text())
    sessions = wanted.get("sessions", "")
    selector = f"{_SELECTOR},{_OF_SESSION}" if sessions else _SELECTOR
    panels: list[JSON] = []
    top = 0
    for row, content in wanted["rows"].items():
        place = _place(0, top, 24, 1)
        panels.append({"type": "row", "id": len(panels) + 1, "title": row, "panels": [], "gridPos": place})
        top += 1
        for number, panel in enumerate(content):
            column, line = number % _COLUMNS, number // _COLUMNS
            place = _place(column * _WIDTH, top + line * _HEIGHT, _WIDTH, _HEIGHT)
            panels.append({"id": len(panels) + 1, "gridPos": place, **_panel(panel, selector)})
        top += -(-len(content) // _COLUMNS) * _HEIGHT
    return {
        "title": wanted["title"],
        "uid": f"raykeeper-{name}",
        "tags": ["raykeeper", "ray"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables(wanted["jobs"], sessions)},
        "panels": panels,
    }


def _panel(panel: JSON, selector: str) -> JSON:
    targets = [
        {"refId": chr(ord("A") + index), "expr": query.replace("TARGET", selector), "legendFormat": legend}
        for index, (legend, query) in enumerate(panel["queries"].items())
    ]
    return {
        "type": "timeseries",
        "title": panel["title"],
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel["unit"], "min": 0}, "overrides": []},
        "targets": targets,
    }


def _place(left: int, top: int, width: int, height: int) -> JSON:
    return {"x": left, "y": top, "w": width, "h": height}


def _variables(metric: str, sessions: str) -> list[JSON]:
    """What is chosen at the top: the Prometheus, the jobs that have this metric, and the sessions of Ray in another."""
    chosen = {"type": "query", "datasource": _SOURCE, "refresh": 2, "includeAll": True, "multi": True}
    variables: list[JSON] = [
        {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
        {"name": "job", "label": "Job", **chosen, "query": f"label_values({metric}, job)"},
    ]
    if sessions:
        query = f"label_values({sessions}, SessionName)"
        variables.append({"name": "SessionName", "label": "Session", **chosen, "query": query})
    return variables


def alerts(chart: str) -> Iterator[JSON]:
    """The alerts of a chart, in their order."""
    rules = yaml.safe_load((CHARTS / chart / "monitoring" / "rules.yaml").read_text())
    for group in rules["groups"]:
        yield from group["rules"]


_ALERTS_HEAD: Final = """# Alerts

<!-- Written by `make generate` from `monitoring/rules.yaml` of the charts; edit those. -->

The charts make these alerts as a PrometheusRule, off by default: `metrics.prometheusRule.enabled` of kuberay-operator
and kuberay-apiserver, `monitoring.prometheusRule.enabled` of ray-history-server. They look at the job that the chart's
own ServiceMonitor makes. Those about collectors need `podMonitor.enabled` and `podMonitor.collector` of the charts with
Ray pods.
"""


def alerts_page() -> str:
    """What each alert means and what to do."""
    sections = [_ALERTS_HEAD]
    for chart in WITH_MONITORING:
        sections.append(f"## {chart}\n")
        sections += [_alert_section(alert) for alert in alerts(chart)]
    return "\n".join(sections)


def _alert_section(alert: JSON) -> str:
    notes, severity = alert["annotations"], alert["labels"]["severity"]
    lasting = f", after {alert['for']}" if "for" in alert else ""
    return (
        f"### {alert['alert']}\n\n*{severity}{lasting}.* {_plain(notes['summary'])} {notes['description']}\n\n"
        f"What to do: {_plain(notes['runbook'])}\n"
    )


def _plain(text: str) -> str:
    """Without Prometheus' markers."""
    for label in ("namespace", "name", "pod", "controller", "kind"):
        text = text.replace(f"{{{{ $labels.{label} }}}}", label.upper())
    return text


def monitoring_files() -> Iterator[tuple[Path, str]]:
    """The generated files with what they should contain."""
    yield ROOT / "docs" / "alerts.md", alerts_page()
    for name, file in DASHBOARDS.items():
        yield CHARTS / file, json.dumps(dashboard(name), indent=1) + "\n"

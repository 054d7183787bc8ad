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
WITH_MONITORING: Final = ("kuberay-operator", "ray-history-server")
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3  # Grafana's grid has 24 columns
_SELECTOR: Final = 'job=~"$job"'
_SOURCE: Final[JSON] = {"type": "prometheus", "uid": "$source"}


def dashboard(chart: str) -> JSON:
    """The dashboard of a chart, as Grafana imports it."""
    wanted = yaml.safe_load((PANELS / f"{chart}.yaml").read_text())
    panels: list[JSON] = []
    top = 0
    for row, content in wanted["rows"].items():
        place = _place(0, top, 24, 1)
        panels.append({"type": "row", "id": len(panels) + 1, "title": row, "panels": [], "gridPos": place})
        top += 1
        for number, panel in enumerate(content):
            column, line = number % _COLUMNS, number // _COLUMNS
            place = _place(column * _WIDTH, top + line * _HEIGHT, _WIDTH, _HEIGHT)
            panels.append({"id": len(panels) + 1, "gridPos": place, **_panel(panel)})
        top += -(-len(content) // _COLUMNS) * _HEIGHT
    return {
        "title": wanted["title"],
        "uid": f"raykeeper-{chart}",
        "tags": ["raykeeper", "ray"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables(wanted["jobs"])},
        "panels": panels,
    }


def _panel(panel: JSON) -> JSON:
    targets = [
        {"refId": chr(ord("A") + index), "expr": query.replace("TARGET", _SELECTOR), "legendFormat": legend}
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


def _variables(metric: str) -> list[JSON]:
    """What is chosen at the top: the Prometheus, and the jobs that have this metric."""
    jobs = {"name": "job", "type": "query", "label": "Job", "datasource": _SOURCE, "refresh": 2, "includeAll": True}
    return [
        {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
        {**jobs, "multi": True, "query": f"label_values({metric}, job)"},
    ]


def alerts(chart: str) -> Iterator[JSON]:
    """The alerts of a chart, in their order."""
    rules = yaml.safe_load((CHARTS / chart / "monitoring" / "rules.yaml").read_text())
    for group in rules["groups"]:
        yield from group["rules"]


_ALERTS_HEAD: Final = """# Alerts

<!-- Written by `make generate` from `monitoring/rules.yaml` of the charts; edit those. -->

The charts make these alerts as a PrometheusRule, off by default: `metrics.prometheusRule.enabled` of kuberay-operator,
`monitoring.prometheusRule.enabled` of ray-history-server. They look at the job that the chart's own ServiceMonitor
makes. Those about collectors need `podMonitor.enabled` and `podMonitor.collector` of the charts with Ray pods.
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
    for chart in WITH_MONITORING:
        yield CHARTS / chart / "monitoring" / "dashboard.json", json.dumps(dashboard(chart), indent=1) + "\n"

"""What may not happen while somebody looks at a session: errors, and requests that leave it."""

from __future__ import annotations

from history.browser.traffic import Traffic
from raykeeper.history.http.pages.assets import ASSETS_PREFIX

RAYS_OWN_ERRORS = {
    ("GET", "api/grafana_health", 500): "there is no Grafana",
    ("GET", "api/prometheus_health", 500): "there is no Prometheus",
    ("HEAD", "api/v0/platform_events", 404): "switched off, which hides the tab",
    ("GET", "api/v0/platform_events", 404): "switched off",
}
"""Ray's dashboard answers these requests of its frontend in the same way, as the recorded run shows."""


def faults_of(traffic: Traffic, session_url: str) -> list[str]:
    """One sentence for each thing that went wrong; `session_url` ends with a slash."""
    faults, excused = [], set()
    bar = f"{session_url.partition('/s/')[0]}{ASSETS_PREFIX}"
    for asked in traffic.requests.values():
        path = asked.url.removeprefix(session_url).partition("?")[0]
        if (asked.method, path, asked.status) in RAYS_OWN_ERRORS:
            excused.add(asked.url)
        elif asked.failure or (asked.status or 0) >= 400:
            faults.append(f"{asked.method} {asked.url}: {asked.failure or asked.status}")
        elif not asked.url.startswith((session_url, bar, "data:", "blob:")):  # the last two are in the page already
            faults.append(f"{asked.method} {asked.url} leaves the session")
    complaints = (complaint for complaint in traffic.complaints if complaint.url not in excused)
    return faults + [f"console: {complaint.text} {complaint.url}".strip() for complaint in complaints]

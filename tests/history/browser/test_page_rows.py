"""Every page of ours is looked at in a browser. Without one this is still known: pages and rows are tables."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from history.browser.own_pages import OWN_PAGES
from raykeeper.history.http.pages.table import SESSION_PAGES, SITE_PAGES
from raykeeper.history.http.routing import SESSION_PATH
from raykeeper.history.urls import JobTab

ELSEWHERE = {
    "/select_cluster": "the list of sessions under KubeRay's address",
    "/failures/{fingerprint}/note": "a form is sent there, which leads back to the page",
    "/live/{kind}/{namespace}/{name}": "test_live_pages.py, with a Kubernetes",
    SESSION_PATH: "leads to Ray's dashboard: test_stock_dashboard.py",
    f"{SESSION_PATH}/job/{{job}}/report.md": "text to be copied, no page",
    f"{SESSION_PATH}/job/{{job}}/report.html": "test_exported_report.py",
    f"{SESSION_PATH}/report.html": "test_exported_report.py",
    f"{SESSION_PATH}/timeline": "test_timeline_page.py",
    f"{SESSION_PATH}/log/of": "leads to a log",
    f"{SESSION_PATH}/log/tail": "a stream, which test_job_pages.py follows",
    f"{SESSION_PATH}/grafana/{{path:path}}": "leads to Grafana",
    **{
        f"/s/{{namespace}}/{{cluster}}/{word}{rest}": "leads to the newest session"
        for word in ("latest", "live")
        for rest in ("", "/{rest:path}")
    },
}
"""What has no row, and why: it is no page, or has tests of its own."""
ALL = [*(page.path for page in SITE_PAGES), *(f"{SESSION_PATH}{page.path}" for page in SESSION_PAGES)]


def _matches(route: str, path: str) -> bool:
    pattern = "".join(
        re.escape(part) if not part.startswith("{") else ".*" if ":path" in part else "[^/]+"
        for part in re.split(r"(\{[^}]*\})", route)
    )
    return re.fullmatch(pattern, path.partition("?")[0]) is not None


@pytest.mark.parametrize("route", ALL)
def test_a_page_has_a_row_or_a_reason(route: str) -> None:
    rows = [page.name for page in OWN_PAGES if page.status == 200 and _matches(route, page.path)]
    assert bool(rows) != (route in ELSEWHERE), rows or "add a row to own_pages.py"


@pytest.mark.parametrize("tab", [tab for tab in get_args(JobTab) if tab])
def test_every_tab_of_a_job_has_a_row(tab: str) -> None:
    assert any(_matches(f"{SESSION_PATH}/job/{{job}}/{tab}", page.path) for page in OWN_PAGES if page.status == 200)


def test_reasons_are_about_pages_that_there_are() -> None:
    assert set(ELSEWHERE) <= set(ALL)

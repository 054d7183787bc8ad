"""The timeline's page without a script: lanes as a table, escaped, with its range and grouping in the address."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from raykeeper.history.http.keeper_api.timeline import ViewQuery
from raykeeper.history.http.pages.markup import tag
from raykeeper.history.http.pages.timeline import TimelineTab, timeline_section
from raykeeper.history.overview.timeline import LaneBins, TimelineLane, TimelineView
from raykeeper.history.overview.timeline_marks import LineMark
from support.history_scene import SESSION

BEGIN = datetime(2026, 11, 15, 10, tzinfo=UTC)
EVIL = "\"'><script>alert(1)</script>"
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


def a_view(label: str, note: str = "") -> TimelineView:
    bins = LaneBins((1.0, 0.5), (1, 2), (0, 1))
    lane = TimelineLane("ab12", label, note, 4000, 3, 1, 90.0, bins=bins)
    mark = LineMark(BEGIN, "warning", f"Evicted: {label}", label)
    end = BEGIN + timedelta(minutes=1)
    return TimelineView(BEGIN, end, 30.0, 2, BEGIN, end, "worker", (lane,), attempts=4000, waiting=7, marks=(mark,))


def section(view: TimelineView | None, job: str | None = None, query: ViewQuery | None = None) -> str:
    tab = TimelineTab(SESSION, job, query or ViewQuery(), view)
    return timeline_section(tab, tag("p", "a picture"))


def test_lanes_are_a_table_for_those_without_a_script() -> None:
    made = section(a_view("trainer-2", "Trainer"))
    assert re.search(r'<th scope="row">trainer-2 <span class="quiet">Trainer</span></th>', made)
    assert "4,000" in made
    assert "<noscript><p>a picture</p></noscript>" in made
    assert "4,000 task attempts; 7 never started." in made


def test_what_needs_a_script_is_hidden_until_it_runs() -> None:
    made = section(a_view("x"))
    assert re.search(r'<div class="stage" hidden data-scripted><canvas', made)
    assert re.search(r'class="buttons" hidden data-scripted', made)


def test_names_from_a_session_are_inert_and_masked() -> None:
    made = section(a_view(EVIL, TOKEN), job=EVIL)
    assert "<script" not in made
    assert TOKEN not in made
    scope = re.search(r'data-scope="([^"]*)"', made)
    assert scope is not None
    assert scope[1] == "jobs/%22%27%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E/timeline"


def test_the_address_says_how_lanes_are_grouped() -> None:
    made = section(a_view("x"), query=ViewQuery(group="node", internals=True))
    assert '<option value="node" selected>Node</option>' in made
    assert re.search(r'name="internals" value="true" checked', made)
    assert f'data-api="{SESSION.path}/api/keeper/v1/"' in made


def test_a_timeline_that_is_being_prepared_says_so() -> None:
    assert "is being prepared" in section(None)

"""The frame of our pages: escaping, what a page may load, landmarks, and pieces that are read without seeing them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.history.http.pages.frame import Crumb, page_response
from raykeeper.history.http.pages.markup import Html, join, tag
from raykeeper.history.http.pages.widgets import duration, facts, moment, pager, table
from raykeeper.history.text import counted
from support.asking import ask
from support.history_scene import Scene, a_scene, session_url

SCRIPT_LIMIT_BYTES = 4096


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


def test_text_is_escaped_wherever_it_is_put() -> None:
    evil = '"><script>alert(1)</script>'
    made = join([evil, tag("a", evil, href=evil, title=None, hidden=True)])
    assert "<script" not in made
    assert made.count("&lt;script&gt;") == 3
    assert " hidden>" in made
    assert "title" not in made


def test_html_is_not_escaped_again() -> None:
    assert tag("p", tag("b", "1 < 2")) == "<p><b>1 &lt; 2</b></p>"
    assert isinstance(tag("p"), Html)


def test_a_page_has_landmarks_a_way_past_the_navigation_and_one_heading() -> None:
    page = bytes(page_response("Jobs", tag("p", "x"), section="jobs", crumbs=[Crumb("Up", "/")]).body).decode()
    assert re.findall(r"<(header|main|nav)[ >]", page) == ["header", "nav", "main", "nav"]
    assert '<a href="#main" class="skip">' in page
    assert page.count("<h1>") == 1
    assert '<a href="/" aria-current="true">Jobs</a>' in page


def test_a_table_names_its_columns_and_rows() -> None:
    made = table("Things", ("Name", "Size"), [("a", "1"), ("b", "2")], name="things")
    assert re.findall(r'<th scope="(\w+)">', made) == ["col", "col", "row", "row"]
    assert "<caption>Things</caption>" in made
    assert '<p hidden class="narrowing">' in made, "what only a script can do is not shown without one"


def test_facts_without_a_value_are_left_out() -> None:
    assert "Owner" not in facts([("Owner", ""), ("Ray", "2.60.0")])


def test_a_time_is_told_in_utc_until_the_script_knows_better() -> None:
    at = datetime(2026, 11, 15, 21, tzinfo=UTC)
    assert moment(at) == '<time datetime="2026-11-15T21:00:00+00:00">2026-11-15 21:00:00 UTC</time>'
    assert moment(None) == ""


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.31, "0.3 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3601, "1 h"),
        (3700, "1 h 1 min"),
        (90_000, "1 d 1 h"),
        (-1, "0.0 s"),
    ],
)
def test_durations_have_two_units(seconds: float, told: str) -> None:
    assert duration(timedelta(seconds=seconds)).replace("\u00a0", " ") == told


def test_one_thing_is_not_told_as_many() -> None:
    assert [counted(number, "node") for number in (0, 1, 1200)] == ["0 nodes", "1 node", "1,200 nodes"]


def test_one_page_has_no_pager() -> None:
    assert pager(first=None, following=None) == ""


async def test_a_page_loads_nothing_but_our_own_files(scene: Scene) -> None:
    page = await ask(scene.app, "/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "style=" not in page.text
    for path in re.findall(r'(?:href|src)="(/keeper/static/[^"]*)"', page.text):
        asset = await ask(scene.app, path)
        assert asset.status == 200
        assert "immutable" in asset.headers["cache-control"]


async def test_a_file_of_another_version_is_not_kept(scene: Scene) -> None:
    asset = await ask(scene.app, "/keeper/static/000000000000/keeper.css")
    assert (asset.status, asset.headers["cache-control"]) == (200, "no-store")
    assert (await ask(scene.app, "/keeper/static/000000000000/..%2Fframe.py")).status == 404


async def test_a_page_may_bring_a_sheet_and_a_module_of_its_own(scene: Scene) -> None:
    page = bytes(page_response("X", tag("p", "x"), styles=["keeper.css"], scripts=["theme.js"]).body).decode()
    paths = re.findall(r'<(?:link rel="stylesheet"|script type="module") (?:href|src)="([^"]*)"', page)
    assert [path.rpartition("/")[2] for path in paths] == ["keeper.css", "keeper.css", "keeper.js", "theme.js"]
    for path in paths:
        assert "immutable" in (await ask(scene.app, path)).headers["cache-control"]


async def test_every_page_has_the_name_the_navigation_and_one_search_box() -> None:
    page = bytes(page_response("Jobs", tag("p", "x"), section="jobs").body).decode()
    assert '<a href="/" class="brand">Raykeeper</a>' in page
    found = re.findall(r'<li><a href="([^"]*)"', page)
    assert found == ["/", "/failures", "/sessions", "/live", "/compare", "/storage"]
    assert page.count('role="search"') == 1
    assert '<button type="button" class="theme" data-switches="theme" hidden>' in page, "a script shows it"


async def test_people_get_a_page_with_ways_on_where_there_is_none_and_programs_get_rays_words(scene: Scene) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path in ("/nosuch", "/nosuch/%3Cscript%3E", f"{session_url()}/nosuch"):
        page = await ask(scene.app, path, headers=browser)
        assert page.status == 404
        assert 'href="/sessions"' in page.text
        assert "<script>" not in page.text
        program = await ask(scene.app, path)
        assert (program.status, program.text) == (404, "404: Not Found")


async def test_all_of_our_script_is_small(scene: Scene) -> None:
    assert len((await ask(scene.app, "/keeper/static/0/keeper.js")).content) <= SCRIPT_LIMIT_BYTES

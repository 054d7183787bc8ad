"""Ray's dashboard under a session's prefix: the right files, and no others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from raykeeper.history.http.pages import dashboard
from raykeeper.history.http.pages.dashboard import find_dashboard
from support.asking import ask
from support.history_scene import Scene, a_scene, put_session, session_url

SECRET = "not for the web"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A dashboard as Ray builds it, next to a file that nobody may read."""
    build = tmp_path / "build"
    files = {
        "index.html": "<!doctype html>",
        "favicon.ico": "icon",
        "static/js/main.84605326.js": "script",
        "static/js/main.84605326.js.map": "{}",
        "static/css/main.ec1426f1.css": "style",
        "static/media/roboto.a45108d3.woff2": "font",
        "speedscope-1.5.3/index.html": "speedscope",
    }
    for name, text in files.items():
        (build / name).parent.mkdir(parents=True, exist_ok=True)
        (build / name).write_text(text)
    (tmp_path / "secret.txt").write_text(SECRET)
    (build / "link.txt").symlink_to(tmp_path / "secret.txt")
    return build


@pytest.fixture
async def scene(tmp_path: Path, build: Path) -> Scene:
    scene = a_scene(tmp_path, dashboard=find_dashboard(build))
    await put_session(scene.store)
    return scene


@pytest.mark.parametrize(
    ("path", "text", "kind", "caching"),
    [
        ("/", "<!doctype html>", "text/html; charset=utf-8", "no-cache"),
        ("/index.html", "<!doctype html>", "text/html; charset=utf-8", "no-cache"),
        ("/favicon.ico", "icon", "image/vnd.microsoft.icon", "no-cache"),
        ("/static/js/main.84605326.js", "script", "text/javascript; charset=utf-8", "immutable"),
        ("/static/css/main.ec1426f1.css", "style", "text/css; charset=utf-8", "immutable"),
        ("/static/js/main.84605326.js.map", "{}", "application/json", "immutable"),
        ("/static/media/roboto.a45108d3.woff2", "font", "font/woff2", "immutable"),
        ("/speedscope-1.5.3/index.html", "speedscope", "text/html; charset=utf-8", "no-cache"),
    ],
)
async def test_files_have_their_types_and_say_how_long_they_hold(
    scene: Scene, path: str, text: str, kind: str, caching: str
) -> None:
    answered = await ask(scene.app, f"{session_url()}{path}")
    assert (answered.status, answered.text, answered.headers["content-type"]) == (200, text, kind)
    assert caching in answered.headers["cache-control"]


async def test_a_file_that_a_browser_has_is_not_sent_again(scene: Scene) -> None:
    first = await ask(scene.app, f"{session_url()}/")
    again = await ask(scene.app, f"{session_url()}/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.content) == (304, b"")


async def test_a_session_without_a_slash_is_sent_to_the_one_with_it(scene: Scene) -> None:
    answered = await ask(scene.app, f"{session_url()}?theme=dark")
    assert (answered.status, answered.headers["location"]) == (307, f"{session_url()}/?theme=dark")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/..%2Fsecret.txt",
        "/static/../../secret.txt",
        "/static/%2e%2e/%2e%2e/secret.txt",
        "/%2Fetc/passwd",
        "//etc/passwd",
        "/link.txt",
        "/static/js/main.84605326.js%00.txt",
        "/static",
        "/static/",
        "/..\\secret.txt",
    ],
)
async def test_nothing_but_the_dashboards_own_files_is_served(scene: Scene, path: str) -> None:
    answered = await ask(scene.app, f"{session_url()}{path}")
    assert answered.status == 404
    assert SECRET not in answered.text


async def test_the_dashboard_of_a_session_that_is_not_there_is_not_shown(scene: Scene) -> None:
    assert (await ask(scene.app, "/s/team-a/train/session_nope/")).status == 404


async def test_without_a_dashboard_the_page_says_what_to_do(tmp_path: Path) -> None:
    scene = a_scene(tmp_path, dashboard=find_dashboard(tmp_path / "nowhere"))
    await put_session(scene.store)
    answered = await ask(scene.app, f"{session_url()}/")
    assert answered.status == 501
    assert "--dashboard-dir" in answered.text
    assert 'href="overview"' in answered.text, "our own page of the session needs no dashboard"
    assert (await ask(scene.app, f"{session_url()}/api/version")).status == 200


def test_the_installed_ray_is_found_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = tmp_path / "ray" / "dashboard" / "client" / "build"
    build.mkdir(parents=True)
    (build / "index.html").write_text("ray")
    (tmp_path / "ray" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_dashboard(None)
    assert found.files == {"index.html": build / "index.html"}
    assert "ray" not in sys.modules


def test_without_ray_the_dashboard_of_our_wheel_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").write_text("ours")
    monkeypatch.setattr(dashboard, "_IN_OUR_WHEEL", tmp_path)
    assert find_dashboard(None).files == {"index.html": tmp_path / "index.html"}


async def test_a_start_page_of_another_version_is_sent_again_though_its_time_and_size_are_the_same(
    scene: Scene, build: Path
) -> None:
    index, url = build / "index.html", f"{session_url()}/"
    first = await ask(scene.app, url)
    known = {"If-None-Match": first.headers["etag"]}
    assert (await ask(scene.app, url, headers=known)).status == 304
    before = index.stat()
    index.write_text(index.read_text().swapcase())
    os.utime(index, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (await ask(scene.app, url, headers=known)).status == 200

"""What a user had the collector ask for besides is given back: the path and query that were polled, and no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from raykeeper.history.http.ray_api import polled_passthrough
from raykeeper.history.http.routing import session_cookies
from raykeeper.layout.polled import polled_body
from raykeeper.layout.records import PolledAnswer
from support.asking import Answered, ask
from support.history_scene import SESSION, STARTED_AT, Scene, a_scene, opened_plainly, put_session, session_url
from support.planted_secrets import LINES, SECRETS

PATH = "/api/v0/tasks/by_team?team=a&limit=10"
BODY = b'{"teams": [{"name": "a",  "share": 0.10}]}'
COOKIE = {"Cookie": "; ".join(f"{name}={value}" for name, value in session_cookies(SESSION).items() if value)}
SLASHED = "/api/shares/"
Way = Callable[..., Awaitable[Answered]]


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    keep(scene, {PATH: BODY})
    return scene


def keep(scene: Scene, bodies: dict[str, bytes], status: int = 200) -> None:
    """Let the session have these answers alone, as the collector files them."""
    answers = {
        path: PolledAnswer(path=path, polled_at=STARTED_AT, status=status, body=polled_body(body))
        for path, body in bodies.items()
    }
    scene.sessions.opened[SESSION] = opened_plainly(SESSION, polled=answers)


async def by_path(scene: Scene, path: str, method: str = "GET") -> Answered:
    return await ask(scene.app, f"{session_url()}{path}", method=method)


async def by_cookies(scene: Scene, path: str, method: str = "GET") -> Answered:
    return await ask(scene.app, path, method=method, headers=COOKIE)


@pytest.mark.parametrize("way", [by_path, by_cookies])
async def test_a_kept_answer_is_given_back_byte_for_byte_and_says_as_of_when(scene: Scene, way: Way) -> None:
    answered = await way(scene, PATH)
    assert (answered.status, answered.content) == (200, BODY)
    assert answered.headers["content-type"] == "application/json; charset=utf-8"
    assert answered.headers["x-raykeeper-as-of"] == STARTED_AT.isoformat()
    head = await way(scene, PATH, "HEAD")
    assert (head.status, head.headers["content-length"]) == (200, str(len(BODY)))


@pytest.mark.parametrize("way", [by_path, by_cookies])
@pytest.mark.parametrize(
    "path",
    [
        "/api/v0/tasks/by_team",
        "/api/v0/tasks/by_team?limit=10&team=a",
        "/api/v0/tasks/by_team?team=a&limit=11",
        "/api/v0/tasks/by_team?team=%61&limit=10",
        "/api/v0/tasks%2Fby_team?team=a&limit=10",
        "/api/v0/x/../tasks/by_team?team=a&limit=10",
        "/api//v0/tasks/by_team?team=a&limit=10",
        "/api/../../../etc/passwd",
        "/api/%2e%2e/%2e%2e/session.json",
        "/api/",
    ],
)
async def test_any_other_spelling_is_rays_404(scene: Scene, way: Way, path: str) -> None:
    answered = await way(scene, path)
    assert (answered.status, answered.text) == (404, "404: Not Found")


async def test_only_what_is_below_api_is_given_back(scene: Scene) -> None:
    keep(scene, {"/timezones": b"{}", "/api/timezones": b"[]"})
    assert (await by_path(scene, "/timezones")).status == 404
    assert (await by_cookies(scene, "/timezones")).status == 404
    sly = f"/s/{SESSION.namespace}%2F{SESSION.cluster}/{SESSION.session}/api/timezones"
    assert (await ask(scene.app, sly)).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("way", [by_path, by_cookies])
async def test_they_are_only_read(scene: Scene, way: Way, method: str) -> None:
    answered = await way(scene, PATH, method)
    assert (answered.status, answered.headers["allow"]) == (405, "GET, HEAD")


async def test_without_cookies_nobody_knows_whose_answer_is_meant(scene: Scene) -> None:
    assert (await ask(scene.app, PATH)).status == 400


@pytest.mark.parametrize(
    "path", ["/api/v0/runtime_envs?detail=1", "/api/authentication_mode", "/api/keeper/v1/nothing"]
)
async def test_what_is_answered_otherwise_is_never_replaced_by_what_was_polled(scene: Scene, path: str) -> None:
    keep(scene, {path: b'"swordfish"'})
    for answered in (await by_path(scene, path), await by_cookies(scene, path)):
        assert "swordfish" not in answered.text


async def test_a_slash_at_the_end_makes_a_difference_to_ray_and_none_to_kuberay(scene: Scene) -> None:
    keep(scene, {SLASHED: b"{}", "/api/shares2?a=1": b"[]"})
    assert [(await by_path(scene, path)).status for path in (SLASHED, "/api/shares")] == [200, 404]
    assert [(await by_cookies(scene, path)).status for path in (SLASHED, "/api/shares", "/api/shares2/?a=1")] == [
        200
    ] * 3


async def test_a_failed_poll_is_no_answer(scene: Scene) -> None:
    keep(scene, {PATH: BODY}, status=500)
    assert (await by_path(scene, PATH)).status == 404


async def test_a_path_that_kuberays_name_does_not_quite_tell_is_found_by_the_name(scene: Scene) -> None:
    keep(scene, {"/api/my/shares": b"{}", "/api/jobs/": b"[]"})
    opened = scene.sessions.opened[SESSION]
    guessed = {
        path: msgspec.structs.replace(answer, is_path_guessed=path != "/api/jobs/")
        for path, answer in opened.polled.items()
    }
    paths = ["/api/my/shares", "/api/my/shares/", "/api/my__shares"]
    assert [(await by_path(scene, path)).status for path in paths] == [200, 404, 404]
    scene.sessions.opened[SESSION] = replace(opened, polled=guessed)
    assert [(await by_path(scene, path)).status for path in paths] == [200, 200, 200]
    assert (await by_path(scene, "/api/jobs")).status == 404


async def test_secrets_are_masked_whatever_the_shape(scene: Scene) -> None:
    environment = {"env_vars": {"PLAIN": "swordfish"}, "pip": [LINES["url"]]}
    count = 12345678901234567890123
    told = {
        "runtime_env": environment,
        "specs": [{"env_vars": {"PLAIN": "swordfish"}, "envVars": "PLAIN=swordfish", "db_password": "swordfish"}],
        "runtime_env_json": msgspec.json.encode({"inner": environment}).decode(),
        "broken": '{"env_vars": {"PLAIN": "swordfish"',
        "lines": list(LINES.values()),
        "count": 0,
    }
    keep(scene, {PATH: msgspec.json.encode(told).replace(b'"count":0', b'"count":%d' % count)})
    answered = await by_path(scene, PATH)
    assert [secret for secret in ("swordfish", *SECRETS.values()) if secret in answered.text] == []
    assert answered.body["runtime_env"]["env_vars"] == {"PLAIN": "<redacted>"}
    assert answered.body["count"] == count


async def test_a_text_is_given_back_as_text_with_its_secrets_masked(scene: Scene) -> None:
    keep(scene, {"/api/notes": f"<b>{LINES['github']}</b>".encode()})
    answered = await by_path(scene, "/api/notes")
    assert (answered.status, answered.text) == (200, "<b>cloning with <redacted></b>")
    assert answered.headers["content-type"] == "text/plain; charset=utf-8"
    assert answered.headers["x-content-type-options"] == "nosniff"


async def test_json_in_pythons_dialect_is_masked_as_json(scene: Scene) -> None:
    keep(scene, {"/api/loss": b'{"loss": NaN, "env_vars": {"PLAIN": "swordfish"}}'})
    answered = await by_path(scene, "/api/loss")
    assert answered.text == '{"loss": NaN, "env_vars": {"PLAIN": "<redacted>"}}'
    assert answered.headers["content-type"] == "application/json; charset=utf-8"


async def test_an_answer_that_cannot_be_masked_is_refused_with_the_reason(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(scene, {"/api/deep": b"[" * 5000 + b"]" * 5000})
    answered = await by_path(scene, "/api/deep")
    assert (answered.status, "nested" in answered.text) == (413, True)
    monkeypatch.setattr(polled_passthrough, "LIMIT_BYTES", len(BODY) - 1)
    keep(scene, {PATH: BODY})
    answered = await by_path(scene, PATH)
    assert answered.status == 413
    assert f"{len(BODY)} bytes" in answered.text

"""What is served is masked at the edge: an answer takes masked values alone, so no endpoint can forget it."""

from __future__ import annotations

import ast
import json
import time
from pathlib import Path

import msgspec
import pytest

import raykeeper.history
from bed.waiting import BUSY_FACTOR
from raykeeper.history.http.pages.markup import tag
from raykeeper.masking import DEPTH_LIMIT, MASK, TEXT_LIMIT, masked, masked_text, masked_value
from support.asking import ask
from support.history_scene import HEAD_ID, SESSION, a_scene, put_session, session_url
from support.planted_secrets import HUNTER2, PIN, SHAPES

SECRET = "hunter2-of-the-database"
MAKERS = {
    "refusals.py": "redirects to the login page",
    "static_token.py": "redirects",
    "sign_in.py": "redirects to and from the identity provider",
    "monitoring.py": "redirects; what Grafana says is Grafana's",
    "responses.py": "takes masked values alone",
    "app.py": "ok, and a head without its body",
    "metrics.py": "numbers of this process",
    "assets.py": "files of the program",
    "dashboard.py": "files of Ray's frontend, and our bar, whose text is masked where it is escaped",
    "export.py": "a page, whose text is masked where it is escaped, of a report that is masked as a whole",
    "frame.py": "pages, whose text is masked where it is escaped",
    "sessions.py": "redirects",
    "jobs.py": "redirects",
    "failures.py": "redirects",
    "table.py": "redirects",
    "log_viewer.py": "redirects",
    "streaming.py": "log files, which are not masked, and rows of a page, whose text is masked where it is escaped",
    "job.py": "redirects, and Markdown of a report that is masked as a whole",
    "polled_passthrough.py": "masks by itself: the body may be no JSON",
    "liveness.py": "one word",
}


def test_only_known_modules_make_responses_by_hand() -> None:
    """A new one says here why what it sends has no secrets."""
    folder = Path(raykeeper.history.__file__).parent
    found = set()
    for path in folder.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        names = (node.func.id for node in calls if isinstance(node.func, ast.Name))
        if any(name.endswith("Response") and name[:1].isupper() for name in names):
            found.add(path.name)
    assert found == set(MAKERS)


async def test_command_lines_of_rays_processes_are_masked(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    entry = {
        "hostname": "head",
        "ip": "10.0.0.1",
        "cmdline": ["raylet", f"--redis_password={SECRET}"],
        "gcs": {"cmdline": ["gcs_server", "--redis-password", SECRET, "--port=6379"]},
        "agent": {"cmdline": f"agent.py --redis-password={SECRET} --port=1"},
        "raylet": {"nodeId": HEAD_ID, "state": "ALIVE"},
    }
    scene.sessions.have_polled(SESSION, "/nodes?view=summary", {"data": {"summary": [entry]}})
    for path in ("/nodes?view=summary", f"/nodes/{HEAD_ID}"):
        answer = await ask(scene.app, session_url() + path)
        assert answer.status == 200
        assert SECRET not in answer.text
        assert "--port=6379" in answer.text


async def test_runtime_environments_are_masked_in_every_member(tmp_path: Path) -> None:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    environment = {"pip": [f"--extra-index-url https://user:{SECRET}@host/simple"], "env_vars": {"PLAIN": SECRET}}
    row = {"runtime_env": environment, "success": False, "creation_time_ms": 1.0, "node_id": HEAD_ID, "ref_cnt": 1}
    row["error"] = f"pip failed: https://user:{SECRET}@host/simple"
    body = {"data": {"result": {"result": [row]}}}
    scene.sessions.have_polled(SESSION, "/api/v0/runtime_envs?detail=1&limit=10000", body)
    answer = await ask(scene.app, f"{session_url()}/api/v0/runtime_envs?detail=1")
    assert SECRET not in answer.text
    assert "https://user:<redacted>@host/simple" in answer.text
    assert answer.body["data"]["result"]["result"][0]["runtime_env"]["env_vars"] == {"PLAIN": MASK}


def test_one_walk_masks_values_of_any_shape() -> None:
    text = json.dumps({"env_vars": {"A": SECRET}, "pip": ["torch"]})
    value = {
        "password": SECRET,
        "serialized_runtime_env": text,
        "in_text": f"saw {text}"[4:],
        "nested": [{"envVars": [SECRET]}, (f"token={SECRET}",)],
        "raw": msgspec.Raw(json.dumps({"api_key": SECRET}).encode()),
        "count": 3,
    }
    shown = bytes(masked(value).json).decode()
    assert SECRET not in shown
    assert json.loads(shown)["count"] == 3
    assert json.loads(json.loads(shown)["serialized_runtime_env"]) == {"env_vars": {"A": MASK}, "pip": ["torch"]}
    assert (
        masked_value({"serialized_runtime_env": '{"pip":  ["torch"]}'})["serialized_runtime_env"]
        == '{"pip":  ["torch"]}'
    )


@pytest.mark.parametrize(
    "text", [f'{{"cmdline": ["--password", "{SECRET}"]}}', f'{{"said": "pass\\u0077ord={SECRET}"}}']
)
def test_a_body_that_is_passed_on_unread_hides_no_secret_in_a_list_or_behind_an_escape(text: str) -> None:
    assert SECRET in str(json.loads(text))
    assert SECRET not in bytes(masked({"raw": msgspec.Raw(text.encode())}).json).decode()


@pytest.mark.parametrize("wrap", ["as it is", "raw", "text", "text in a text", "long text", "raw that holds a text"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_json_of_any_shape_is_masked_wherever_that_json_stands(shape: str, wrap: str) -> None:
    value = SHAPES[shape]
    text = json.dumps(value)
    given = {
        "as it is": value,
        "raw": msgspec.Raw(text.encode()),
        "text": {"t": text},
        "text in a text": {"t": json.dumps({"inner": text})},
        "long text": {"t": f" {text[:-1]}{' ' * 100}{text[-1]}"},
        "raw that holds a text": msgspec.Raw(json.dumps({"t": text}).encode()),
    }[wrap]
    shown = bytes(masked({"outer": given}).json).decode()
    assert HUNTER2 not in shown
    assert str(PIN) not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "value",
    [
        {"token": None, "password": "", "has_token": True, "secret": False, "credentials": {}, "passwords": []},
        {"max_tokens": 123_456_789, "tokens": 512, "tokenizer": "bert", "token_count": 7},
        {"resources": {"license_token": 2.0, "CPU": 1.0}, "pass": 12, "fail": 3},
        {"PWD": "/home/ray", "OLDPWD": "/root"},
        {"name": "monkey", "value": "banana", "key": "k"},
        {"imagePullSecrets": [{"name": "registry"}]},
        {"summary": {"rotate secret": {"func_or_class_name": "rotate secret", "state_counts": {"FAILED": 1}}}},
        {"deployments": {"count-tokens": {"name": "count-tokens", "status": "HEALTHY"}}},
    ],
)
def test_what_merely_looks_like_the_name_of_a_secret_stays(value: object) -> None:
    assert masked_value(value) == value
    raw = msgspec.json.encode(value)
    assert msgspec.json.decode(bytes(masked(msgspec.Raw(raw)).json)) == value


@pytest.mark.parametrize(
    "text", [f'{{"a": {{"env_vars": {{"A": "{SECRET}"}}}}, "a": 1}}', f'{{"env_vars": "{SECRET}", "env_vars": {{}}}}']
)
def test_a_member_that_comes_twice_hides_no_secret(text: str) -> None:
    assert SECRET not in str(masked_value({"t": text, "serialized_runtime_env": text}))
    assert SECRET not in bytes(masked(msgspec.Raw(text.encode())).json).decode()


def test_names_and_the_shape_stay_where_values_are_masked() -> None:
    value = {"credentials": {"user": "ray", "keys": ["a", None, True]}, "cmdline": ["--pin", 5, "--password", 12345]}
    assert masked_value(value) == {
        "credentials": {"user": MASK, "keys": [MASK, None, True]},
        "cmdline": ["--pin", 5, "--password", MASK],
    }


def test_what_is_nested_too_deeply_is_masked_as_a_whole() -> None:
    value: object = "deep"
    for _ in range(DEPTH_LIMIT + 10):
        value = [value]
    assert MASK in str(masked_value(value))
    assert "deep" not in str(masked_value(value))


def test_a_flag_behind_an_empty_password_is_none() -> None:
    text = "-Dray.redis.password= -Dray.node-ip=10.77.0.1"
    assert masked_text(text) == text
    assert masked_text(f"password = {SECRET} -x") == "password = <redacted> -x"
    assert masked_text(f"password=-{SECRET}") == "password=<redacted>"


def test_texts_of_pages_are_masked_where_they_are_escaped() -> None:
    shown = tag("p", f"DB_PASSWORD={SECRET} <b>", title=f"token={SECRET}")
    assert SECRET not in shown
    assert "&lt;redacted&gt; &lt;b&gt;" in shown


@pytest.mark.parametrize("piece", ["-", "--", "token", "key=", "sk-", "://", "sig"])
def test_masking_a_hostile_text_takes_a_bounded_time(piece: str) -> None:
    """18 MB of dashes took 24 s: a microsecond a byte, on one of four query threads."""
    text = piece * (18_000_000 // len(piece))
    began = time.process_time()
    shown = masked_value({"error_message": text})["error_message"]
    assert time.process_time() - began < 2 * BUSY_FACTOR
    assert len(shown) < TEXT_LIMIT + 1000
    assert "more characters are not served" in shown
    assert masked_text(text[:1000] + f" password={SECRET}").endswith(MASK)

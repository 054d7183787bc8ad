"""Jobs and Serve applications of a head, in Ray's own words: asked for, submitted, stopped, put."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from ray_head.scripted_head import Answerer, ScriptedHead, as_json, as_text
from raykeeper.errors import Unavailable
from raykeeper.ray.dashboard import Dashboard
from raykeeper.ray.errors import HeadRefused
from raykeeper.ray.jobs import JobInfo, JobSubmission, delete_job, job_info, stop_job, submit_job
from raykeeper.ray.serve import (
    MESSAGE_CHARACTERS,
    ApplicationStatus,
    DeploymentStatus,
    RequestCounts,
    is_proxy_healthy,
    parse_request_counts,
    put_serve_config,
    request_counts,
    serve_applications,
)
from support.scripted_server import served

RUNNING = {"type": "SUBMISSION", "submission_id": "a b", "status": "RUNNING", "message": "runs", "start_time": 5}
TAKEN = "Traceback ... ValueError: Job with submission_id a already exists. Please use a different submission_id."


@pytest.fixture
def script() -> ScriptedHead:
    return ScriptedHead()


@pytest.fixture
async def head(script: ScriptedHead) -> AsyncIterator[Dashboard]:
    async with served(script.handle) as url:
        yield Dashboard(url)


async def test_a_job_is_found_by_its_submission_id_whatever_is_in_it(script: ScriptedHead, head: Dashboard) -> None:
    script.say("/api/jobs/a%20b", RUNNING)
    assert await job_info(head, "a b") == JobInfo("a b", "RUNNING", "runs", 5)


async def test_a_job_that_the_head_does_not_know_is_none(script: ScriptedHead, head: Dashboard) -> None:
    script.answer("/api/jobs/a", as_text("Job a does not exist", 404))
    assert await job_info(head, "a") is None


@pytest.mark.parametrize("answer", [as_json({"msg": "oops"}, 500), as_json({"status": "DANCING"}), as_text("no JSON")])
async def test_what_says_nothing_about_the_job_is_no_answer(
    answer: Answerer, script: ScriptedHead, head: Dashboard
) -> None:
    script.answer("/api/jobs/a", answer)
    with pytest.raises(Unavailable):
        await job_info(head, "a")


async def test_a_job_is_submitted_with_what_it_has(script: ScriptedHead, head: Dashboard) -> None:
    bodies: list[bytes] = []

    async def take(request: web.BaseRequest) -> web.StreamResponse:
        assert request.method == "POST"
        assert request.headers["Content-Type"] == "application/json"
        bodies.append(await request.read())
        return web.json_response({"submission_id": "a"})

    script.answer("/api/jobs/", take)
    await submit_job(head, JobSubmission("python a.py", "a", {"pip": ["x"]}, entrypoint_num_cpus=0.5))
    assert json.loads(bodies[0]) == {
        "entrypoint": "python a.py",
        "submission_id": "a",
        "runtime_env": {"pip": ["x"]},
        "entrypoint_num_cpus": 0.5,
    }


async def test_a_submission_that_was_made_before_is_a_success(script: ScriptedHead, head: Dashboard) -> None:
    script.answer("/api/jobs/", as_text(TAKEN, 500))
    await submit_job(head, JobSubmission("python a.py", "a"))


async def test_a_submission_that_ray_does_not_want_is_told_in_its_words(script: ScriptedHead, head: Dashboard) -> None:
    script.answer("/api/jobs/", as_text("runtime_env must be a dict", 400))
    with pytest.raises(HeadRefused, match="runtime_env must be a dict"):
        await submit_job(head, JobSubmission("python a.py", "a"))


async def test_a_job_is_stopped_and_one_that_has_ended_or_is_unknown_needs_no_stop(
    script: ScriptedHead, head: Dashboard
) -> None:
    script.say("/api/jobs/a/stop", {"stopped": True})
    await stop_job(head, "a")
    script.say("/api/jobs/b/stop", {"stopped": False})
    script.say("/api/jobs/b", {**RUNNING, "status": "SUCCEEDED"})
    await stop_job(head, "b")
    await stop_job(head, "unknown")
    script.say("/api/jobs/b", RUNNING)
    with pytest.raises(Unavailable, match="was not stopped"):
        await stop_job(head, "b")


async def test_a_job_is_deleted(script: ScriptedHead, head: Dashboard) -> None:
    script.say("/api/jobs/a", {"deleted": True})
    await delete_job(head, "a")
    await delete_job(head, "unknown")


async def test_serve_applications_are_told_by_name(script: ScriptedHead, head: Dashboard) -> None:
    details = {"status": "RUNNING", "message": "", "deployments": {"D": {"status": "HEALTHY", "replicas": []}}}
    script.say("/api/serve/applications/?api_type=declarative", {"applications": {"": details}, "proxies": {}})
    applications = {"default": ApplicationStatus("RUNNING", "", {"D": DeploymentStatus("HEALTHY")})}
    assert await serve_applications(head) == applications


async def test_a_serve_config_is_put_and_a_wrong_one_refused(script: ScriptedHead, head: Dashboard) -> None:
    methods: list[str] = []

    async def take(request: web.BaseRequest) -> web.StreamResponse:
        methods.append(request.method)
        body = await request.json()
        return web.Response(status=200 if body["applications"] else 400, text="applications is empty")

    script.answer("/api/serve/applications/", take)
    await put_serve_config(head, {"applications": [{"name": "a"}]})
    with pytest.raises(HeadRefused, match="applications is empty"):
        await put_serve_config(head, {"applications": []})
    assert methods == ["PUT", "PUT"]


async def test_the_health_of_a_serve_proxy(script: ScriptedHead, head: Dashboard) -> None:
    assert not await is_proxy_healthy(head)
    script.answer("/-/healthz", as_text("success"))
    assert await is_proxy_healthy(head)


HOSTILE = {
    "nested without end": b'{"x":' + b"[" * 200_000,
    "no text": b'{"applications":{"\xff":{}}}',
    "hundreds of thousands of applications": b'{"applications":{'
    + b",".join(b'"%d":{}' % number for number in range(300_000))
    + b"}}",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_a_head_that_says_what_no_ray_says_has_not_answered(
    body: bytes, script: ScriptedHead, head: Dashboard
) -> None:
    """It belongs to its users, and the operator keeps what it says: 700,000 applications were 140 MB for each head."""
    script.answer("/api/serve/applications/?api_type=declarative", as_text(body))
    with pytest.raises(Unavailable):
        await serve_applications(head)


async def test_what_a_head_says_at_length_is_cut(script: ScriptedHead, head: Dashboard) -> None:
    long = {"status": "UNHEALTHY", "message": "m" * 100_000}
    apps = {"applications": {"a": {**long, "deployments": {"d": long}}}}
    script.say("/api/serve/applications/?api_type=declarative", apps)
    [(_, application)] = (await serve_applications(head)).items()
    assert len(application.message) == len(application.deployments["d"].message) == MESSAGE_CHARACTERS


async def test_a_job_of_impossible_times_has_none(script: ScriptedHead, head: Dashboard) -> None:
    script.say("/api/jobs/a", {**RUNNING, "start_time": 10**30, "end_time": -(10**30)})
    info = await job_info(head, "a")
    assert info is not None
    assert (info.start_time, info.end_time) == (None, None)


def a_count(status: str, count: str, name: str = "ray_serve_num_http_requests_total", application: str = "a") -> str:
    """A line as Ray 2.60 has it."""
    tags = f'Component="core_worker",WorkerId="32d6",application="{application}",method="GET",route="/"'
    return f'{name}{{{tags},status_code="{status}"}} {count}\n'


METRICS = "".join(
    [
        "# HELP ray_serve_num_http_requests_total The number of HTTP requests processed.\n",
        a_count("200", "6.0"),
        a_count("404", "1.0"),
        a_count("500", "2.0"),
        a_count("503", "1.0", application="b"),
        a_count("200", "9000.0", application=""),
        a_count("500", "2.0", "ray_serve_num_http_error_requests_total"),
    ]
)


async def test_requests_are_counted_by_what_they_were_answered_with(script: ScriptedHead, head: Dashboard) -> None:
    script.answer("/metrics", as_text(METRICS))
    assert await request_counts(head) == RequestCounts(answered=10, failed=3)


def test_a_counter_that_has_two_names_counts_once() -> None:
    older = METRICS + METRICS.replace("requests_total", "requests")
    assert parse_request_counts(older.encode()) == RequestCounts(10, 3)
    oldest = METRICS.replace("requests_total", "requests")
    assert parse_request_counts(oldest.encode()) == RequestCounts(10, 3)


@pytest.mark.parametrize(
    "text", ["", "<html>", METRICS[:200], a_count("500", "NaN"), a_count("500", "1e999")], ids=repr
)
def test_what_is_no_count_counts_nothing_or_little(text: str) -> None:
    assert parse_request_counts(text.encode()).answered <= 1 << 53


async def test_metrics_that_are_refused_are_no_counts(script: ScriptedHead, head: Dashboard) -> None:
    script.answer("/metrics", as_text("no", 503))
    with pytest.raises(Unavailable):
        await request_counts(head)

"""Whatever a request says, the answer is Ray's for such a request: a reason, an empty list, and never a crash."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote, urlencode

import pytest
from starlette.types import ASGIApp

from raykeeper.history.http.ray_api.routes import ENDPOINTS
from support.asking import Answered, ask
from support.goldensession import Moments, dashboard, golden_session

NASTY = (
    "' OR '1'='1",
    "1; DROP TABLE tasks; --",
    "$row_limit",
    "{where}",
    "%s",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "file:///etc/passwd",
    "\x00",
    "\ud7ff\U0001f600",
    "a" * 10_000,
    "-1",
    "9" * 40,
    "NaN",
    "",
)
PARAMETERS = (
    *("limit", "detail", "timeout", "job_id", "ids", "view", "format", "summary_by", "api_type", "download"),
    *("exclude_driver", "filter_keys", "filter_predicates", "filter_values"),
)
JSON_ENDPOINTS = [endpoint for endpoint in ENDPOINTS if "/logs" not in endpoint.path]  # log files are what users wrote
LISTS = ("tasks", "actors", "jobs", "nodes", "workers", "placement_groups", "objects", "runtime_envs", "cluster_events")


@pytest.fixture
async def app(ingested_moments: Moments) -> AsyncIterator[ASGIApp]:
    async with golden_session(ingested_moments["final"]) as asked:
        yield dashboard(asked)


async def test_nasty_values_of_every_parameter_are_answered(app: ASGIApp) -> None:
    """An exception would rise through `ask`."""
    for value in NASTY:
        for endpoint in JSON_ENDPOINTS:
            path = endpoint.path
            for name in ("job_id", "node_id", "actor_id", "job_or_submission_id"):
                path = path.replace(f"{{{name}}}", quote(value, safe="") or "none")
            answered = await ask(app, f"{path}?{urlencode(dict.fromkeys(PARAMETERS, value))}")
            assert answered.status in (200, 400, 404, 500)
            assert "root:" not in answered.text


@pytest.mark.parametrize("resource", LISTS)
async def test_a_nasty_filter_value_matches_nothing_or_is_refused(app: ASGIApp, resource: str) -> None:
    columns = (await _list(app, resource, filter_keys="nope", filter_predicates="=", filter_values="1")).body["msg"]
    named = columns.partition("Supported filter columns: ")[2].strip("{}").replace("'", "").split(", ")
    assert len(named) > 2
    for column in named:
        for value in NASTY:
            answered = await _list(app, resource, filter_keys=column, filter_predicates="=", filter_values=value)
            assert answered.status in (200, 400)
            if answered.status == 200 and value not in ("", "-1"):
                assert answered.body["data"]["result"]["result"] == []


@pytest.mark.parametrize("resource", LISTS)
async def test_a_limit_is_a_number_from_0_to_10000(app: ASGIApp, resource: str) -> None:
    assert (await _list(app, resource, limit="0")).body["data"]["result"]["result"] == []
    assert (await _list(app, resource, limit="10000")).status == 200
    for wrong in ("-1", "10001", "ten", "1.5", "1e3"):
        refused = await _list(app, resource, limit=wrong)
        assert refused.status == 400
        assert refused.body["result"] is False
        assert refused.body["data"] == {"result": None}
        assert refused.body["msg"]


async def test_a_page_is_cut_but_its_totals_are_not(app: ASGIApp) -> None:
    result = (await _list(app, "tasks", limit="3")).body["data"]["result"]
    assert (len(result["result"]), result["total"], result["num_filtered"]) == (3, 178, 178)


async def test_a_page_of_details_shows_the_tasks_of_the_plain_page(app: ASGIApp) -> None:
    plain = (await _list(app, "tasks", limit="40")).body["data"]["result"]["result"]
    detailed = (await _list(app, "tasks", limit="40", detail="1")).body["data"]["result"]["result"]
    assert [{name: row[name] for name in plain[0]} for row in detailed] == plain


async def test_filters_are_combined_and_count_apart_from_the_total(app: ASGIApp) -> None:
    failed = urlencode({"filter_keys": "state", "filter_predicates": "=", "filter_values": "FAILED"})
    no_methods = urlencode({"filter_keys": "type", "filter_predicates": "!=", "filter_values": "actor_task"})
    result = (await ask(app, f"/api/v0/tasks?{failed}&{no_methods}")).body["data"]["result"]
    assert result["total"] == 15  # the state alone: Ray's GCS filters by it
    assert 0 < result["num_filtered"] < 15
    assert {row["type"] for row in result["result"]} == {"NORMAL_TASK", "ACTOR_CREATION_TASK"}
    assert {row["state"] for row in result["result"]} == {"FAILED"}


async def test_a_filter_without_predicate_is_ignored_as_in_ray(app: ASGIApp) -> None:
    assert (await _list(app, "tasks", filter_keys="name", filter_values="ok")).body["data"]["result"]["total"] == 178


async def test_a_column_may_be_written_in_any_case(app: ASGIApp) -> None:
    found = await _list(app, "nodes", filter_keys="Is_Head_Node", filter_predicates="=", filter_values="true")
    assert [row["node_ip"] for row in found.body["data"]["result"]["result"]] == ["10.77.0.1"]


async def test_ids_of_no_actor_have_null(app: ASGIApp) -> None:
    answered = await ask(app, "/logical/actors?ids=x,091f8cf92dbf3945a9c4fab601000000,%27")
    actors = answered.body["data"]["actors"]
    assert list(actors) == ["x", "091f8cf92dbf3945a9c4fab601000000", "'"]
    assert (actors["x"], actors["'"]) == (None, None)


async def test_no_answer_to_anybody_has_a_secret(app: ASGIApp) -> None:
    """`hunter2` and `s3cr3t` are values of env_vars in the recorded run."""
    paths = [endpoint.path for endpoint in JSON_ENDPOINTS if "{" not in endpoint.path and "events" not in endpoint.path]
    for path in paths:
        for headers in ({}, {"User-Agent": "Mozilla/5.0"}):
            answered = await ask(app, f"{path}?detail=1&limit=10000&view=summary", headers=headers)
            assert "hunter2" not in answered.text, path
            assert "s3cr3t" not in answered.text, path


async def _list(app: ASGIApp, resource: str, **params: str) -> Answered:
    return await ask(app, f"/api/v0/{resource}?{urlencode(params)}")

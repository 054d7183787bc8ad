"""Decisions that need no database: masks, jobs known twice, nodes that died after the last poll, event files."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from raykeeper.history.entities.event_files import by_job, local_time, parse_event_files
from raykeeper.history.entities.job_list import merged_jobs
from raykeeper.history.entities.nodes import parse_statistics
from raykeeper.history.entities.ray_json import task_time_ms
from raykeeper.history.errors import InvalidQuery, Unanswerable
from raykeeper.history.http.ray_api.actor_pages import asked_resources
from raykeeper.history.http.ray_api.node_pages import all_logical_resources, node_summaries
from raykeeper.history.http.ray_api.state_query import (
    Filter,
    FilterColumn,
    parse_state_query,
    to_condition,
    typed_filters,
)
from raykeeper.masking import masked_environment_text, masked_value

# --- masks


def test_values_of_env_vars_are_masked_and_names_stay() -> None:
    text = masked_environment_text('{"working_dir":"x","env_vars":{"TOKEN":"s3cr3t"}}')
    assert json.loads(text or "") == {"working_dir": "x", "env_vars": {"TOKEN": "<redacted>"}}


def test_an_environment_without_secrets_stays_byte_for_byte() -> None:
    assert masked_environment_text('{"working_dir":"x" }') == '{"working_dir":"x" }'


def test_a_name_of_env_vars_written_with_escapes_is_masked_too() -> None:
    assert "s3cr3t" not in (masked_environment_text('{"env\\u005fvars": {"A": "s3cr3t"}}') or "")


@pytest.mark.parametrize("unreadable", ["{env_vars: s3cr3t", '["s3cr3t"]', '"s3cr3t"'])
def test_an_environment_that_cannot_be_read_is_masked_as_a_whole(unreadable: str) -> None:
    assert masked_environment_text(unreadable) == "<redacted>"


def test_environments_are_masked_at_any_depth() -> None:
    serve = {"applications": {"a": {"deployments": [{"ray_actor_options": {"runtime_env": {"env_vars": {"A": "x"}}}}]}}}
    assert '"x"' not in json.dumps(masked_value(serve))


# --- times


@pytest.mark.parametrize(
    ("ns", "says"),
    [
        (1_794_863_220_522_999_800, 1_794_863_220_522),
        (1_794_863_220_522_999_999, 1_794_863_220_523),
        (1_794_863_220_523_000_001, 1_794_863_220_523),
    ],
)
def test_the_last_moment_of_a_millisecond_counts_to_the_next_as_in_ray(ns: int, says: int) -> None:
    assert task_time_ms(ns) == says


# --- what a request asks for


def test_a_request_without_parameters_asks_for_a_hundred() -> None:
    query = parse_state_query(QueryParams(""))
    assert (query.limit, query.is_detailed, query.excludes_drivers, query.filters) == (100, False, True, ())


def test_filters_belong_together_by_their_place() -> None:
    text = "filter_keys=name&filter_keys=state&filter_predicates=%3D&filter_predicates=!%3D"
    text += "&filter_values=a&filter_values=b"
    assert parse_state_query(QueryParams(text)).filters == (Filter("name", "=", "a"), Filter("state", "!=", "b"))


def test_a_key_without_value_fails_as_in_ray() -> None:
    with pytest.raises(Unanswerable):
        parse_state_query(QueryParams("filter_keys=name"))


@pytest.mark.parametrize("text", ["detail=maybe", "exclude_driver=2", "timeout=soon", "limit=", "limit=1_0x"])
def test_a_parameter_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        parse_state_query(QueryParams(text))


def test_values_are_bound_and_never_part_of_the_statement() -> None:
    columns = {"name": FilterColumn(), "pid": FilterColumn("int")}
    nasty = "'; DROP TABLE tasks; --"
    condition = to_condition(typed_filters([Filter("name", "=", nasty), Filter("pid", "!=", "7")], columns), columns)
    assert nasty not in condition.sql
    assert condition.params == {"filter_0": nasty, "filter_1": 7}


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (
            FilterColumn("int"),
            "Invalid filter `--filter x abc` for a int type column. "
            "Please provide an integer filter `--filter x [int]`",
        ),
        (
            FilterColumn("bool"),
            "Invalid filter `--filter x abc` for a boolean type column. Please provide `--filter x [True|true|1]` for "
            "True or `--filter x [False|false|0]` for False.",
        ),
        (FilterColumn("int", is_optional=True), "Failed to convert a value abc of type <class 'str'> to <class 'int'>"),
        (
            FilterColumn("bool", is_optional=True),
            "Failed to convert a value abc of type <class 'str'> to <class 'bool'>",
        ),
    ],
    ids=["number", "truth", "number or none", "truth or none"],
)
def test_a_value_of_another_kind_is_refused_in_rays_words(column: FilterColumn, says: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        typed_filters([Filter("x", "=", "abc")], {"x": column})
    assert str(refused.value) == says


def test_a_number_too_large_for_a_table_equals_nothing() -> None:
    columns = {"pid": FilterColumn("int")}
    assert to_condition(typed_filters([Filter("pid", "=", str(2**64))], columns), columns).params == {"filter_0": None}


# --- jobs


def a_driver(**more: Any) -> dict[str, Any]:
    known = {
        "job_id": "02000000",
        "submission_id": None,
        "driver_pid": 7,
        "driver_node_id": "ab",
        "driver_ip": "10.0.0.1",
        "entrypoint": "python x.py",
        "serialized_runtime_env": "{}",
        "metadata": "{}",
        "created_ms": 1000,
        "finished_ms": None,
    }
    return {**known, **more}


def test_a_driver_that_the_last_poll_missed_is_a_job() -> None:
    [job] = merged_jobs([], [a_driver()])
    assert (job["type"], job["status"], job["job_id"]) == ("DRIVER", "RUNNING", "02000000")
    assert job["driver_info"] == {"id": "02000000", "node_ip_address": "10.0.0.1", "pid": "7"}


def test_a_driver_that_ended_after_the_last_poll_is_over() -> None:
    polled = {"type": "DRIVER", "job_id": "02000000", "status": "RUNNING", "end_time": None, "driver_info": {"id": "x"}}
    [job] = merged_jobs([polled], [a_driver(finished_ms=2000)])
    assert (job["status"], job["end_time"], job["driver_info"]) == ("SUCCEEDED", 2000, {"id": "x"})


def test_a_submission_job_learns_of_its_driver() -> None:
    polled = {"type": "SUBMISSION", "job_id": None, "submission_id": "raysubmit_1", "status": "PENDING"}
    [job] = merged_jobs([polled], [a_driver(submission_id="raysubmit_1")])
    assert (job["job_id"], job["status"], job["driver_info"]["pid"]) == ("02000000", "PENDING", "7")


def test_how_a_submission_job_ended_is_not_guessed_from_its_driver() -> None:
    [job] = merged_jobs([], [a_driver(submission_id="raysubmit_1", finished_ms=2000)])
    assert (job["type"], job["status"], job["end_time"]) == ("SUBMISSION", "RUNNING", None)


# --- nodes


def a_node(**more: Any) -> dict[str, Any]:
    known = {
        "node_id": "ab",
        "node_ip": "10.0.0.1",
        "hostname": "head",
        "node_name": "head",
        "labels": "{}",
        "instance_id": None,
        "instance_type_name": None,
        "started_ns": 5_000_000,
        "state": "ALIVE",
        "is_head_node": True,
        "resources_total": '{"CPU":2.0}',
        "end_ns": None,
        "death_reason": None,
        "death_message": None,
    }
    return {**known, **more}


AS_OF = datetime(2026, 11, 15, tzinfo=UTC)
DEAD = {"state": "DEAD", "end_ns": 9_000_000, "death_reason": "UNEXPECTED_TERMINATION", "death_message": "gone"}


def test_a_node_that_died_after_the_last_poll_is_dead() -> None:
    statistics = parse_statistics({"data": {"summary": [{"cpu": 1.5, "raylet": {"nodeId": "ab", "state": "ALIVE"}}]}})
    [node] = node_summaries([a_node(**DEAD)], statistics, AS_OF)
    assert node["cpu"] == 1.5
    assert (node["raylet"]["state"], node["raylet"]["stateMessage"]) == ("DEAD", "Unexpected termination: gone")


def test_a_node_that_was_polled_before_it_was_measured_is_known_from_events() -> None:
    statistics = parse_statistics(
        {"data": {"summary": [{"raylet": {"nodeId": "ab", "state": "ALIVE", "numWorkers": 3}}]}}
    )
    [node] = node_summaries([a_node()], statistics, AS_OF)
    assert (node["hostname"], node["ip"], node["raylet"]["numWorkers"]) == ("head", "10.0.0.1", 3)
    assert node["raylet"]["resourcesTotal"] == {"CPU": 2.0}


def test_a_node_that_was_never_polled_is_shown_without_statistics() -> None:
    [node] = node_summaries([a_node()], parse_statistics({}), AS_OF)
    assert (node["ip"], node["raylet"]["state"], node["raylet"]["resourcesTotal"]) == (
        "10.0.0.1",
        "ALIVE",
        {"CPU": 2.0},
    )


def test_a_node_that_was_never_polled_says_what_it_offered_and_that_its_use_is_unknown() -> None:
    row = a_node(resources_total='{"CPU":2.0,"memory":23215262976.0,"node:10.0.0.1":1.0,"worker":10.0}')
    texts = all_logical_resources({"cd": "0.0/1.0 CPU"}, [row, a_node(node_id="cd"), a_node(**DEAD, node_id="ef")])
    assert texts == {"ab": "2.0 CPU\n21.62GiB memory\n10.0 worker\n(use was not measured)", "cd": "0.0/1.0 CPU"}


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": {"summary": [None, {}, {"raylet": None}]}}])
def test_statistics_of_another_shape_are_none(body: dict[str, Any]) -> None:
    assert parse_statistics(body).entries == {}


def test_resources_in_a_placement_group_are_shown_as_they_were_asked_for() -> None:
    group = "2d7357c07289a5b2c9b4074d4e1f02000000"
    asked = {f"CPU_group_{group}": 0.2, f"CPU_group_1_{group}": 0.2, f"bundle_group_{group}": 0.001, "worker": 1.0}
    assert asked_resources(asked) == {"CPU": 0.2, "worker": 1.0}


# --- event files


def test_events_of_all_files_come_once_and_in_order() -> None:
    python = b'{"event_id": "b", "timestamp": "20", "custom_fields": {"job_id": "01000000"}}\n'
    cpp = b'cut off line}\n{"event_id": "a", "timestamp": 10}\n{"event_id": "x"}\n[1]\n\xff\n'
    events = parse_event_files([python, cpp, python])
    assert [(event["event_id"], local_time(event, timedelta(hours=2))) for event in events] == [
        ("a", "1970-01-01 02:00:10"),
        ("b", "1970-01-01 02:00:20"),
    ]
    assert {job: len(found) for job, found in by_job(events).items()} == {"global": 1, "01000000": 1}


def test_a_message_of_several_lines_has_them_again() -> None:
    r"""Ray writes `\\n` into the text that JSON then encodes."""
    line = rb'{"event_id": "a", "timestamp": 1, "message": "node died\\n(1) network\\r(2) memory"}'
    [event] = parse_event_files([line])
    assert event["message"] == "node died\n(1) network\n(2) memory"


# --- what is remembered

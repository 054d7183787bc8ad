"""When each endpoint is asked, and which answers are stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raykeeper.collector.poll.endpoints import JOBS, NODE_STATISTICS, SERVE, VERSION, polled_endpoints
from raykeeper.collector.poll.jobs import JobRow, parse_jobs
from raykeeper.collector.poll.schedule import JOBS_PER_ROUND, SessionPolls
from raykeeper.ray.dashboard import Answer

ENDPOINTS = {endpoint.name: endpoint for endpoint in polled_endpoints(30.0)}
TRAIN = "/api/train/v2/runs/v1"
RUNNING, OVER = JobRow("01000000", "RUNNING"), JobRow("01000000", "SUCCEEDED")


def answer(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), "application/json")


def some_polls(now: float = 0.0) -> SessionPolls:
    return SessionPolls(tuple(ENDPOINTS.values()), 30.0, now)


def due_names(polls: SessionPolls, now: float) -> set[str]:
    return {endpoint.name for endpoint in polls.due(now)}


def test_everything_is_due_at_first_and_the_same_answer_is_stored_once() -> None:
    polls = some_polls()
    assert due_names(polls, 0.0) == set(ENDPOINTS)
    assert polls.answered(ENDPOINTS[SERVE], answer({"applications": {}}), 0.0)
    assert SERVE not in due_names(polls, 29.0)
    assert SERVE in due_names(polls, 30.0)
    assert not polls.answered(ENDPOINTS[SERVE], answer({"applications": {}}), 30.0)
    assert polls.answered(ENDPOINTS[SERVE], answer({"applications": {"a": 1}}), 60.0)


def test_the_health_of_serves_controller_is_no_news() -> None:
    """It counts its own loops, so that no two answers of a running Serve are the same."""
    polls = some_polls()
    for now, loops in ((0.0, 801), (30.0, 840)):
        serve = {"applications": {"app": {}}, "controller_health_metrics": {"num_control_loops": loops}}
        assert polls.answered(ENDPOINTS[SERVE], answer(serve), now) is (now == 0.0)


def test_facts_are_asked_until_they_are_answered() -> None:
    polls = some_polls()
    assert not polls.answered(ENDPOINTS[VERSION], answer("no", 500), 0.0)
    assert VERSION in due_names(polls, 100.0)
    assert polls.answered(ENDPOINTS[VERSION], answer({}), 100.0)
    assert VERSION not in due_names(polls, 10_000.0)


def test_node_statistics_are_stored_each_time() -> None:
    polls = some_polls()
    assert polls.answered(ENDPOINTS[NODE_STATISTICS], answer([1]), 0.0)
    assert polls.answered(ENDPOINTS[NODE_STATISTICS], answer([1]), 60.0)


@pytest.mark.parametrize(
    ("node", "seconds"),
    [
        ({"hostname": "a", "raylet": {"state": "ALIVE"}}, 60.0),
        ({"raylet": {"state": "ALIVE"}}, 10.0),
        ({"raylet": {"state": "DEAD"}}, 60.0),
        ("odd", 60.0),
    ],
)
def test_nodes_of_which_there_are_no_figures_yet_are_looked_at_again_soon(node: Any, seconds: float) -> None:
    polls = some_polls()
    polls.answered(ENDPOINTS[NODE_STATISTICS], answer({"data": {"summary": [node]}}), 0.0)
    assert NODE_STATISTICS not in due_names(polls, seconds - 1)
    assert NODE_STATISTICS in due_names(polls, seconds)


def test_changed_jobs_are_looked_at_again_soon() -> None:
    polls = some_polls()
    polls.answered(ENDPOINTS[JOBS], answer([{"job_id": "01000000"}]), 0.0)
    assert JOBS in due_names(polls, 10.0)
    polls.answered(ENDPOINTS[JOBS], answer([{"job_id": "01000000"}]), 10.0)
    assert JOBS not in due_names(polls, 39.0)


def test_jobs_are_looked_at_often_while_one_runs() -> None:
    polls = some_polls()
    polls.answered(ENDPOINTS[JOBS], answer([]), 0.0)
    polls.see_jobs({"01000000": RUNNING}, 0.0)
    assert JOBS in due_names(polls, 5.0)
    polls.answered(ENDPOINTS[JOBS], answer([]), 5.0)
    polls.see_jobs({"01000000": OVER}, 5.0)
    assert JOBS not in due_names(polls, 34.0)


def pauses_of_failures(polls: SessionPolls, now: float, times: int) -> list[int]:
    pauses = []
    for _ in range(times):
        polls.answered(ENDPOINTS[SERVE], answer("Serve is not installed", 500), now)
        pauses.append(next(seconds for seconds in range(1, 2000) if SERVE in due_names(polls, now + seconds)))
        now += pauses[-1]
    return pauses


def test_what_is_not_answered_is_asked_less_and_less_often() -> None:
    assert pauses_of_failures(some_polls(), 0.0, 8) == [60, 120, 240, 480, 600, 600, 600, 600]


def test_what_was_answered_before_is_asked_every_minute() -> None:
    polls = some_polls()
    polls.answered(ENDPOINTS[SERVE], answer({"applications": {}}), 0.0)
    assert pauses_of_failures(polls, 30.0, 4) == [60, 60, 60, 60]


def test_a_heavy_answer_is_asked_for_less_often() -> None:
    polls = some_polls()
    polls.answered(ENDPOINTS[NODE_STATISTICS], Answer(200, b"x" * (10 << 20), "text/plain"), 0.0)
    assert NODE_STATISTICS not in due_names(polls, 299.0)
    assert NODE_STATISTICS in due_names(polls, 300.0)


def test_questions_that_make_tasks_are_asked_less_while_nothing_changes() -> None:
    """Each answer about Train costs two tasks in the lists of users: 8,640 a day at two polls a minute."""
    polls, now, pauses = some_polls(), 0.0, []
    for _ in range(6):
        polls.answered(ENDPOINTS[TRAIN], answer({"train_runs": [{"id": "a"}]}), now)
        pauses.append(next(seconds for seconds in range(1, 2000) if TRAIN in due_names(polls, now + seconds)))
        now += pauses[-1]
    assert pauses == [30, 60, 120, 240, 300, 300]
    polls.see_jobs({"01000000": RUNNING}, now)
    assert TRAIN in due_names(polls, now + 30.0)
    polls.answered(ENDPOINTS[TRAIN], answer({"train_runs": [{"id": "b"}]}), now)
    assert TRAIN in due_names(polls, now + 30.0)


def test_datasets_are_asked_while_their_job_runs_and_until_they_settle() -> None:
    polls = some_polls()
    polls.see_jobs({"01000000": RUNNING}, 0.0)
    [datasets] = [endpoint for endpoint in polls.due(0.0) if endpoint.name == "/api/data/datasets/01000000"]
    assert not polls.answered(datasets, answer({"datasets": []}), 0.0)
    assert polls.answered(datasets, answer({"datasets": [{"state": "RUNNING"}]}), 30.0)
    polls.see_jobs({"01000000": OVER}, 40.0)
    assert polls.answered(datasets, answer({"datasets": [{"state": "FINISHED"}]}), 60.0)
    assert not polls.answered(datasets, answer({"datasets": [{"state": "FINISHED"}]}), 90.0)
    assert datasets not in polls.due(1e9)
    assert datasets not in polls.last()


def test_datasets_of_a_finished_job_that_nobody_answers_are_given_up_but_tried_at_the_end() -> None:
    polls = some_polls()
    polls.see_jobs({"01000000": OVER}, 0.0)
    datasets = polls.due(0.0)[-1]
    for now in (0.0, 100.0):
        polls.answered(datasets, answer("No module named 'pandas'", 503), now)
    assert datasets not in polls.due(1e9)
    assert datasets in polls.last()


def test_a_round_asks_for_the_datasets_of_a_bounded_number_of_jobs_each_in_its_turn() -> None:
    polls = some_polls()
    jobs = {f"{number:08x}": JobRow(f"{number:08x}", "RUNNING") for number in range(50)}
    polls.see_jobs(jobs, 0.0)
    asked = []
    for now in (0.0, 1.0, 2.0):
        this_round = [endpoint for endpoint in polls.due(now) if "datasets" in endpoint.name]
        assert len(this_round) <= JOBS_PER_ROUND
        for endpoint in this_round:
            polls.answered(endpoint, answer({"datasets": []}), now)
        asked += this_round
    assert len({endpoint.name for endpoint in asked}) == 50


def test_an_idle_head_stays_within_its_share_of_objects() -> None:
    """An hour of unchanged answers: 60 samples of node statistics and each other answer once."""
    polls, stored, now = some_polls(), 0, 0.0
    while now < 3600.0:
        for endpoint in polls.due(now):
            stored += polls.answered(endpoint, answer({"idle": True}), now)
        now = max(polls.next_at(), now + 1.0)
    assert stored <= 70


def test_jobs_that_cannot_be_read_do_not_hide_their_neighbours() -> None:
    body = b'[{"job_id": "01000000", "status": "FAILED"}, 7, {"job_id": null}, {"job_id": "02000000"}]'
    assert {job: row.is_over for job, row in parse_jobs(body).items()} == {"01000000": True, "02000000": False}
    assert parse_jobs(b"garbage") == parse_jobs(b"{}") == {}


def test_additional_endpoints_are_asked_as_they_are_and_only_once() -> None:
    names = [endpoint.path for endpoint in polled_endpoints(30.0, ["/api/x?a=1", "/api/jobs/", "/api/x?a=1"])]
    assert names.count("/api/x?a=1") == names.count("/api/jobs/") == 1

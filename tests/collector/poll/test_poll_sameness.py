"""What counts as news in an answer of the dashboard."""

from __future__ import annotations

import json

import pytest

from raykeeper.collector.poll.sameness import fingerprint, says_nothing

STATUS = "======== Autoscaler status: {time} ========\nNode status\nActive:\n {nodes}\nTotal Usage:\n {cpu}/4.0 CPU"


def status(time: str = "2026-11-15 20:14:30.684676", nodes: str = "1 a\n 1 b", cpu: str = "0.0") -> bytes:
    return json.dumps({"data": {"clusterStatus": STATUS.format(time=time, nodes=nodes, cpu=cpu)}}).encode()


def test_the_time_and_order_of_a_cluster_status_are_no_news() -> None:
    assert fingerprint(status()) == fingerprint(status("2026-11-15 20:16:55.934519", "1 b\n 1 a"))


def test_another_usage_in_a_cluster_status_is_news() -> None:
    assert fingerprint(status()) != fingerprint(status(cpu="1.0"))


def test_the_order_of_jobs_and_keys_is_no_news() -> None:
    assert fingerprint(b'[{"id": "1", "s": "A"}, {"id": "2"}]') == fingerprint(b'[{"id":"2"},{"s":"A","id":"1"}]')


def test_a_status_that_moved_to_another_job_is_news() -> None:
    before = b'[{"id": "1", "s": "RUNNING"}, {"id": "2", "s": "FAILED"}]'
    assert fingerprint(before) != fingerprint(b'[{"id": "1", "s": "FAILED"}, {"id": "2", "s": "RUNNING"}]')


def test_volatile_keys_are_no_news_at_the_top_only() -> None:
    volatile = frozenset({"health"})
    assert fingerprint(b'{"health": 1, "a": 1}', volatile) == fingerprint(b'{"health": 2, "a": 1}', volatile)
    assert fingerprint(b'{"a": {"health": 1}}', volatile) != fingerprint(b'{"a": {"health": 2}}', volatile)


@pytest.mark.parametrize("body", [b"", b"garbage", b'{"a": NaN}', b'{"a": "\xff"}'])
def test_what_is_no_json_is_compared_byte_for_byte(body: bytes) -> None:
    assert fingerprint(body) == fingerprint(body) != fingerprint(body + b"x")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"applications": {}, "proxies": {}}', True),
        (b'{"applications": {"a": {}}}', False),
        (b'{"datasets": []}', True),
        (b'{"datasets": [1]}', False),
        (b'{"train_runs": []}', True),
        (b'{"other": []}', False),
        (b"[]", False),
        (b"garbage", False),
    ],
)
def test_an_answer_about_nothing_is_recognised(body: bytes, expected: bool) -> None:
    assert says_nothing(body) is expected

"""Ray Serve's own logs: how many requests failed, what replicas raised over them, and which replicas Serve gave up."""

from __future__ import annotations

import json

import pytest

from raykeeper.history.report.log_excerpts import LibraryLog
from raykeeper.history.report.model import Confidence
from raykeeper.history.report.rules.serve import serve_error, unexplained_requests
from raykeeper.history.report.serve_logs import ServeRecord, entries_of, serve_record

AT = "2026-11-17 08:16:13,126"
FRAMES = (
    "Traceback (most recent call last):\n"
    '  File "/env/lib/python3.11/site-packages/ray/serve/_private/replica.py", line 1459, in _handle\n    yield x\n'
    '  File "/app/shop.py", line 17, in __call__\n    return PRICES[fruit]\n'
)
PASSED_ON = (
    "Traceback (most recent call last):\n"
    '  File "/app/gateway.py", line 9, in __call__\n    return await self.shop.remote(x)\n'
    "ray.exceptions.RayTaskError(KeyError): ray::ServeReplica:market:Shop.handle_request() (pid=7, ip=192.0.2.2)\n"
    "  File \"/app/shop.py\", line 17, in __call__\n    return PRICES[fruit]\nKeyError: 'plum'\n"
)


def access(request: str, status: int, who: str = "proxy 192.0.2.2") -> str:
    return f"INFO {AT} {who}{request and f' {request}'} -- GET / {status} 35.7ms\n"


def raised(request: str, error: str, who: str = "market_Shop rat8biuh", frames: str = FRAMES) -> str:
    return f"ERROR {AT} {who} {request} -- Request failed.\n{frames}{error}\n"


def log(kind: str, text: str, file: str = "", *, is_whole: bool = True) -> LibraryLog:
    return LibraryLog(kind, "node", file or f"serve/{kind}_market_Shop_rat8biuh.log", text, 0, is_whole=is_whole)


ONE, TWO, THREE = (f"{n}99fe15e-651f-4413-a9e5-e38692bbf5f4" for n in range(3))


def test_requests_are_counted_by_the_proxies_and_errors_by_the_replicas() -> None:
    proxy = log("proxy", access(ONE, 200) + access(TWO, 500) + access(THREE, 503) + access("", 404))
    replica = log("replica", raised(TWO, "KeyError: 'plum'") + access(TWO, 500, "market_Shop rat8biuh"))
    record = serve_record([proxy, replica])
    assert (record.requests, record.failed, record.is_cut) == (4, 2, False)
    [error] = record.errors
    assert (error.error, error.where and error.where.text, error.times) == ("KeyError: 'plum'", "shop.py:17", 1)
    assert (error.who.text, error.excerpt.address.line) == ("Ray Serve deployment Shop of application market", 7)
    assert record.in_words == "2 of 4 requests failed: 1 x KeyError: 'plum'"


def test_an_error_that_was_passed_on_counts_once_and_for_whoever_raised_it() -> None:
    inner = log("replica", raised(ONE, "KeyError: 'plum'"))
    outer = log("replica", raised(ONE, "", "market_Gateway x1", PASSED_ON), "serve/replica_market_Gateway_x1.log")
    [error] = serve_record([outer, inner]).errors
    assert (error.times, error.who.name) == (1, "Shop of application market")


def test_a_replica_that_could_not_start_is_told_by_the_controller() -> None:
    who = "Exception in Replica(id='tp', deployment='Model', app='chat'), the replica will be stopped."
    controller = log("controller", f"ERROR {AT} controller 408 -- {who}\n{FRAMES}FileNotFoundError: no weights\n")
    record = serve_record([controller])
    told = serve_error(record.errors[0], record)
    assert (told.rule, told.confidence, told.requests) == ("failed_replica", Confidence.CONFIRMED, 0)
    assert told.title == (
        "deployment Model of application chat raised FileNotFoundError: no weights (shop.py:17), and Serve gave its "
        "replicas up"
    )


def test_logs_in_json_are_read_too() -> None:
    line = {"levelname": "ERROR", "message": "Request failed.", "request_id": ONE, "exc_text": f"{FRAMES}KeyError: 1"}
    [entry] = entries_of(json.dumps(line))
    assert (entry.level, entry.request) == ("ERROR", ONE)
    [error] = serve_record([log("replica", json.dumps(line))]).errors
    assert error.error == "KeyError: 1"
    told = json.dumps({"levelname": "INFO", "message": "GET / 500 3.1ms", "request_id": ONE})
    assert serve_record([log("proxy", told)]).failed == 1


def test_only_the_end_of_a_long_log_is_said_to_be_so() -> None:
    record = serve_record([log("proxy", access(ONE, 500), is_whole=False)])
    assert record.in_words == "1 of the last 1 requests failed"


def test_requests_that_failed_without_a_word_are_told_all_the_same() -> None:
    told = unexplained_requests(serve_record([log("proxy", access(ONE, 502))]))
    assert told is not None
    assert (told.title, told.confidence, told.requests) == ("1 of 1 requests failed", Confidence.POSSIBLE, 1)
    assert unexplained_requests(ServeRecord(requests=5)) is None


@pytest.mark.parametrize("secret", ["password=hunter2", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"])
def test_secrets_in_errors_are_masked(secret: str) -> None:
    [error] = serve_record([log("replica", raised(ONE, f"ValueError: {secret}"))]).errors
    shown = "\n".join(line.text for line in error.excerpt.lines)
    assert not any(word in f"{error.error}{shown}" for word in ("hunter2", "MIIE"))

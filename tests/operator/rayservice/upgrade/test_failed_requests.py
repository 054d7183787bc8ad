"""How many requests to a new cluster failed, and what that means for its upgrade."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from raykeeper.operator.rayservice.facts import MarkRolledBack
from raykeeper.operator.rayservice.plan import plan
from raykeeper.operator.rayservice.upgrade.failures import LEAST_REQUESTS, Failures, RequestWindow
from raykeeper.operator.rayservice.upgrade.options import error_limit
from raykeeper.operator.rayservice.upgrade.steps import Shares
from raykeeper.ray.serve import RequestCounts
from support.rayservice_facts import NOW, a_service
from support.upgrade_facts import NEW, OLD, STRATEGY, stepwise, upgrading


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_what_a_pod_counted_before_it_was_first_asked_does_not_count() -> None:
    window = RequestWindow()
    window.note("one", at(0), RequestCounts(100, 90))
    assert window.failures(at(1), {"one"}) == Failures(0, 0, at(0), at(0))
    window.note("one", at(5), RequestCounts(130, 91))
    assert window.failures(at(6), {"one"}) == Failures(30, 1, at(5), at(0))


def test_what_is_older_than_a_minute_does_not_count() -> None:
    window = RequestWindow()
    for second, counts in ((0, (1000, 0)), (30, (1100, 0)), (59, (1150, 10)), (90, (1200, 50))):
        window.note("one", at(second), RequestCounts(*counts))
    assert window.failures(at(59), {"one"}) == Failures(200, 50, at(90), at(0))
    assert window.failures(at(100), {"one"}) == Failures(100, 50, at(90), at(0))
    assert window.failures(at(160), {"one"}) == Failures(0, 0, at(90), at(0)), "nobody asked since"


def test_all_pods_count_and_one_that_is_gone_does_not() -> None:
    window = RequestWindow()
    for second, counts in ((0, (0, 0)), (4, (10, 1))):
        window.note("one", at(second), RequestCounts(*counts))
        window.note("two", at(second + 1), RequestCounts(2 * counts[0], 2 * counts[1]))
    assert window.failures(at(6), {"one", "two"}) == Failures(30, 3, at(4), at(0))
    assert window.failures(at(6), {"one", "two", "three"}).counted_at is None
    assert window.failures(at(6), {"two"}) == Failures(20, 2, at(5), at(0))
    assert window.failures(at(6), {"one", "two"}).counted_at is None, "it was forgotten"


def test_a_proxy_that_was_started_anew_counts_from_nothing() -> None:
    window = RequestWindow()
    window.note("one", at(0), RequestCounts(1000, 900))
    window.note("one", at(70), RequestCounts(30, 1))
    assert window.failures(at(70), {"one"}) == Failures(30, 1, at(70), at(0))


def test_an_answer_that_is_read_twice_counts_once() -> None:
    window = RequestWindow()
    window.note("one", at(0), RequestCounts(0, 0))
    for _ in range(3):
        window.note("one", at(5), RequestCounts(7, 7))
    assert window.failures(at(6), {"one"}) == Failures(7, 7, at(5), at(0))


def test_an_operator_that_was_started_anew_in_an_upgrade_does_not_judge_it_by_what_was_before() -> None:
    window = RequestWindow()
    window.note("one", at(-5), RequestCounts(1000, 400))  # errors of the hour before, which were seen and mended
    shares, told, marks = counted(window.failures(at(-4), {"one"}))
    assert (shares and shares.traffic, marks, "not known yet" in told) == (30, [], True)
    window.note("one", at(15), RequestCounts(1100, 400))
    assert window.failures(at(15), {"one"}).waits(at(-60)) == "", "twenty seconds say enough"


@pytest.mark.parametrize(
    ("answered", "failed", "is_too_much"),
    [(LEAST_REQUESTS - 1, LEAST_REQUESTS - 1, False), (100, 5, False), (100, 6, True), (20, 2, True)],
)
def test_a_limit_is_passed_by_more_than_it_among_enough(answered: int, failed: int, is_too_much: bool) -> None:
    assert Failures(answered, failed).exceed(5) is is_too_much


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        ("99.999", 99.999),
        ("0", None),
        ("100", None),
        ("-1", None),
        ("\u0663", None),
        ("", None),
    ],
)
def test_a_limit_is_a_percentage(text: str, limit: float | None) -> None:
    given = {"raykeeper.io/rollback-error-percent": text}
    assert error_limit(a_service(annotations=given, upgradeStrategy=STRATEGY)) == limit
    assert error_limit(a_service(annotations=given)) is None, "it says nothing where all moves at once"


def counted(failures: Failures, moved: float = 60, traffic: int = 30) -> tuple[Shares | None, str, list[object]]:
    service = upgrading((100, 100 - traffic), (100, traffic), moved=moved)
    new = replace(NEW, failures=failures)
    step = plan(service, stepwise(service, OLD, new, error_limit=5.0), NOW)
    return step.shares, step.told, [one for one in step.actions if isinstance(one, MarkRolledBack)]


def test_the_next_step_is_taken_once_the_last_one_is_known_to_be_well() -> None:
    shares, _, marks = counted(Failures(100, 5, at(-1)))
    assert (shares and shares.traffic, marks) == (40, [])


@pytest.mark.parametrize(
    ("failures", "cause"),
    [
        (Failures(), "not known yet"),
        (Failures(100, 0, at(-45)), "not known yet"),
        (Failures(100, 0, at(-1), at(-15)), "not known yet"),
        (Failures(100, 0, at(-1), trouble="no answer to /metrics"), "cannot be counted: no answer to /metrics"),
    ],
)
@pytest.mark.parametrize("traffic", [30, 100])
def test_nothing_moves_before_that(failures: Failures, cause: str, traffic: int) -> None:
    shares, told, marks = counted(failures, traffic=traffic)
    assert (shares and shares.traffic, shares and shares.active_capacity, marks) == (traffic, 100, [])
    assert cause in told


def test_the_first_step_needs_no_verdict() -> None:
    shares, _, _ = counted(Failures(), traffic=0)
    assert shares is not None
    assert shares.traffic == 10


def test_too_many_failed_requests_are_written_down_with_their_number() -> None:
    _, _, (mark,) = counted(Failures(200, 11, at(-1)))
    assert isinstance(mark, MarkRolledBack)
    assert (mark.name, mark.goal) == ("a", "goal")
    assert mark.cause == "b: 11 of the last 200 requests were answered with an error of the server, and 5 % are allowed"

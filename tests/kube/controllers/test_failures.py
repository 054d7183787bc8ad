"""Which failure is told, and how often."""

from __future__ import annotations

import pytest

from raykeeper.errors import InvalidSpec, Misconfigured, Unavailable
from raykeeper.kube.controllers.failures import LASTING_SECONDS, Failures, Kind, chief_cause, kind_of, retry_after
from raykeeper.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    NotLeading,
    TooManyRequests,
    Unauthorized,
)
from support.clocks import ManualClock

ANSWER = ("PATCH /api/v1/pods/a", 400, "Reason", "message")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidSpec("NoHead", "a has no head"), Kind.INVALID),
        (Unavailable("API server", "connection refused"), Kind.PASSING),
        (Conflict(*ANSWER), Kind.PASSING),
        (AlreadyExists(*ANSWER), Kind.PASSING),
        (NotFound(*ANSWER), Kind.PASSING),
        (Expired(*ANSWER), Kind.PASSING),
        (TooManyRequests(*ANSWER), Kind.PASSING),
        (Forbidden(*ANSWER), Kind.REFUSED),
        (Unauthorized(*ANSWER), Kind.REFUSED),
        (Invalid(*ANSWER), Kind.REFUSED),
        (BadRequest(*ANSWER), Kind.REFUSED),
        (Misconfigured("flag", 1, "use 2"), Kind.REFUSED),
        (NotLeading("lease lost"), Kind.NOT_LEADING),
        (KeyError("a"), Kind.BUG),
        (TimeoutError(), Kind.BUG),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.name,
)
def test_every_error_has_its_kind(error: Exception, kind: Kind) -> None:
    assert kind_of(error) is kind


def test_of_parallel_failures_the_gravest_counts_and_the_longest_wait() -> None:
    bug, busy = ValueError("bug"), Unavailable("API server", "busy", retry_after=7)
    group = ExceptionGroup("creates", [busy, ExceptionGroup("more", [bug, Conflict(*ANSWER)])])
    assert chief_cause(group) is bug
    assert retry_after(group) == 7
    assert chief_cause(ExceptionGroup("all", [bug, NotLeading("gone")])).args == ("gone",)


def test_a_single_error_is_its_own_cause_and_asks_for_no_wait() -> None:
    error = Unavailable("API server", "gone")
    assert chief_cause(error) is error
    assert retry_after(error) == 0
    assert retry_after(KeyError()) == 0


def test_what_may_pass_by_itself_is_told_once_it_lasts_and_only_once() -> None:
    clock = ManualClock()
    failures: Failures[str] = Failures(clock)
    for message in ("refused", "reset"):
        assert not failures.is_news("a", Unavailable("API server", message))
    clock.advance(LASTING_SECONDS)
    assert failures.is_news("a", Unavailable("API server", "refused"))
    assert not failures.is_news("a", Unavailable("API server", "reset"))
    assert failures.is_over("a")


def test_an_outage_that_ended_does_not_count_towards_the_next() -> None:
    clock = ManualClock()
    failures: Failures[str] = Failures(clock)
    failures.is_news("a", Unavailable("API server", "refused"))
    assert not failures.is_over("a"), "nothing was told, so there is no end to tell"
    clock.advance(LASTING_SECONDS)
    assert not failures.is_news("a", Unavailable("API server", "refused"))


def test_a_refusal_is_told_at_once_and_again_when_it_says_something_else() -> None:
    failures: Failures[str] = Failures(ManualClock())
    assert failures.is_news("a", InvalidSpec("Replicas", "5 > 3"))
    assert not failures.is_news("a", InvalidSpec("Replicas", "5 > 3"))
    assert failures.is_news("a", InvalidSpec("Replicas", "6 > 3"))
    assert failures.is_news("b", InvalidSpec("Replicas", "5 > 3"))


def a_bug(value: int) -> Exception:
    with pytest.raises(ValueError, match=str(value)) as caught:
        raise ValueError(value)
    return caught.value


def test_a_bug_is_the_same_bug_whatever_value_it_mentions() -> None:
    failures: Failures[str] = Failures(ManualClock())
    assert failures.is_news("a", a_bug(1))
    assert not failures.is_news("a", a_bug(2))
    assert failures.is_news("a", KeyError("elsewhere"))
    assert not failures.is_news("a", a_bug(3)), "two bugs in turn are told once each"


def test_trouble_takes_bounded_memory_and_none_once_it_is_over() -> None:
    failures: Failures[str] = Failures(ManualClock())
    for number in range(1000):
        failures.is_news("a", InvalidSpec("Replicas", str(number)))
    assert len(failures._troubles["a"].told) <= 32
    failures.is_over("a")
    assert len(failures) == 0

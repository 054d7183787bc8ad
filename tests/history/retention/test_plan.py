"""Which sessions go: decided by facts, rules and the time alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.history.retention.plan import Planner, Removal, age_of, plan
from raykeeper.history.retention_policy import FOREVER, Outcome, RetentionPolicy, Rule, outcome_of
from raykeeper.layout.retention import SessionFacts
from support.retention_scene import week_policy

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
OUTCOMES = ("", "ok", "failed", "with failures", "stopped", "running")


def a_session(
    number: int = 0,
    *,
    namespace: str = "team-a",
    days: float = 8,
    outcome: str = "ok",
    size: int | None = 100,
    is_final: bool = True,
) -> SessionFacts:
    ended_at = NOW - timedelta(days=days)
    return SessionFacts(
        *(namespace, "train", f"session_{number}"),
        started_at=ended_at - timedelta(minutes=5),
        start_written=ended_at,
        is_final=is_final,
        ended_at=ended_at,
        outcome=outcome,
        bytes=size,
        last_written=ended_at,
    )


def gone(removals: list[Removal]) -> list[str]:
    return [removal.facts.session for removal in removals]


def newest_first(sessions: list[SessionFacts]) -> list[SessionFacts]:
    return sorted(sessions, key=lambda facts: facts.started_at, reverse=True)


def test_failures_are_kept_longer_than_successes() -> None:
    sessions = [
        a_session(1, days=6),
        a_session(2),
        a_session(3, outcome="failed"),
        a_session(4, days=91, outcome="failed"),
    ]
    removals = list(plan(sessions, week_policy(), NOW))
    assert gone(removals) == ["session_2", "session_4"]
    assert removals[0].reason == "a session that succeeded is kept for 7 days"
    assert removals[1].reason == "a session that failed is kept for 90 days"


def test_only_sessions_whose_outcome_would_decide_are_worth_reading() -> None:
    planner = Planner(week_policy(), NOW)
    days = {6: False, 8: True, 89: True, 91: False}
    assert {age: planner.waits_for_outcome(a_session(1, days=age, outcome="")) for age in days} == days
    assert not planner.waits_for_outcome(a_session(1, outcome="failed"))
    assert not Planner(week_policy(default=Rule("default")), NOW).waits_for_outcome(a_session(1, outcome=""))


def test_a_session_whose_outcome_nobody_knows_is_kept_as_long_as_the_longest() -> None:
    sessions = [
        a_session(1, days=89, outcome=""),
        a_session(2, days=89, outcome="running"),
        a_session(3, days=91, outcome=""),
    ]
    assert gone(list(plan(sessions, week_policy(), NOW))) == ["session_3"]
    for_ever = RetentionPolicy(default=Rule("d", ages={Outcome.FAILED: FOREVER, Outcome.SUCCEEDED: timedelta(days=7)}))
    assert gone(list(plan(sessions, for_ever, NOW))) == []


def test_a_success_with_failures_counts_as_a_failure() -> None:
    assert gone(list(plan([a_session(outcome="with failures")], week_policy(), NOW))) == []


def test_running_and_held_sessions_stay() -> None:
    sessions = [a_session(1, days=900, is_final=False), a_session(2, days=900)]
    assert gone(list(plan(sessions, week_policy(), NOW, frozenset({sessions[1].id})))) == []


def test_what_was_written_late_is_as_young_as_that() -> None:
    late = SessionFacts(
        *("n", "c", "s"),
        started_at=NOW - timedelta(days=90),
        start_written=NOW - timedelta(days=90),
        is_final=True,
        ended_at=NOW - timedelta(days=89),
        outcome="ok",
        last_written=NOW - timedelta(days=1),
    )
    assert gone(list(plan([late], week_policy(), NOW))) == []


def test_the_newest_sessions_of_a_namespace_are_kept() -> None:
    rule = Rule("few", max_sessions=2)
    sessions = [a_session(number, days=number, namespace="ab"[number % 2]) for number in range(1, 9)]
    removals = list(plan(sessions, RetentionPolicy(default=rule), NOW))
    assert gone(removals) == ["session_5", "session_6", "session_7", "session_8"]
    assert removals[0].reason == "the namespace keeps its 2 newest sessions"


def test_the_newest_bytes_of_a_namespace_are_kept_and_older_ones_go_even_if_they_would_fit() -> None:
    sizes = (100, 100, 500, 10)
    sessions = [a_session(number, days=1 + number, size=size) for number, size in enumerate(sizes)]
    removals = list(plan(sessions, RetentionPolicy(default=Rule("r", max_bytes=300)), NOW))
    assert gone(removals) == ["session_2", "session_3"]


def test_the_first_rule_that_fits_a_namespace_counts() -> None:
    rules = (Rule("audit", "audit-*"), Rule("a", "a*", any_age=timedelta(days=1)))
    policy = RetentionPolicy(rules=rules, default=Rule("default", any_age=timedelta(days=30)))
    sessions = [a_session(1, namespace="audit-x"), a_session(2, namespace="alpha"), a_session(3, namespace="beta")]
    assert [(removal.facts.namespace, removal.rule) for removal in plan(sessions, policy, NOW)] == [("alpha", "a")]


ages = st.one_of(st.none(), st.integers(1, 100).map(lambda days: timedelta(days=days)), st.just(FOREVER))
rules = st.builds(
    Rule,
    name=st.sampled_from(["one", "two"]),
    namespace=st.sampled_from(["*", "a*", "ab"]),
    ages=st.dictionaries(st.sampled_from(list(Outcome)), st.integers(1, 50).map(lambda days: timedelta(days=days))),
    any_age=ages,
    max_sessions=st.one_of(st.none(), st.integers(1, 5)),
    max_bytes=st.one_of(st.none(), st.integers(1, 2000)),
)
policies = st.builds(RetentionPolicy, rules=st.lists(rules, max_size=3).map(tuple), default=rules)
stored = st.lists(
    st.builds(
        a_session,
        number=st.integers(0, 10**6),
        namespace=st.sampled_from(["a", "ab", "b"]),
        days=st.floats(0, 120),
        outcome=st.sampled_from(OUTCOMES),
        size=st.one_of(st.none(), st.integers(0, 1000)),
        is_final=st.booleans(),
    ),
    max_size=15,
    unique_by=lambda facts: facts.id,
).map(newest_first)


@settings(max_examples=60)
@given(stored, policies, st.data())
def test_nothing_goes_that_must_stay_and_every_reason_is_true(
    sessions: list[SessionFacts], policy: RetentionPolicy, data: st.DataObject
) -> None:
    held = frozenset(data.draw(st.sets(st.sampled_from([facts.id for facts in sessions])))) if sessions else frozenset()
    for removal in plan(sessions, policy, NOW, held):
        facts, rule = removal.facts, policy.rule_for(removal.facts.namespace)
        assert facts.is_final
        assert facts.id not in held
        assert age_of(facts, NOW) >= max(policy.min_age, removal.needs_age)
        is_old = age_of(facts, NOW) >= rule.age_of(outcome_of(facts.outcome))
        assert is_old or rule.max_sessions is not None or rule.max_bytes is not None
        assert removal.rule == rule.name


@settings(max_examples=60)
@given(stored, policies)
def test_after_a_sweep_nothing_more_goes(sessions: list[SessionFacts], policy: RetentionPolicy) -> None:
    removed = {removal.facts.id for removal in plan(sessions, policy, NOW)}
    assert list(plan([facts for facts in sessions if facts.id not in removed], policy, NOW)) == []


@settings(max_examples=60)
@given(stored, policies)
def test_limits_hold_for_what_may_be_removed(sessions: list[SessionFacts], policy: RetentionPolicy) -> None:
    removed = {removal.facts.id for removal in plan(sessions, policy, NOW)}
    for namespace in ("a", "ab", "b"):
        rule = policy.rule_for(namespace)
        kept = [facts for facts in sessions if facts.namespace == namespace and facts.id not in removed]
        if rule.max_sessions is not None and all(_may_go(facts) for facts in kept):
            assert len(kept) <= rule.max_sessions
        if rule.max_bytes is not None and all(_may_go(facts) for facts in kept):
            assert sum(facts.bytes or 0 for facts in kept) <= rule.max_bytes


@settings(max_examples=60)
@given(stored, policies)
def test_namespaces_do_not_influence_each_other(sessions: list[SessionFacts], policy: RetentionPolicy) -> None:
    together = {removal.facts.id for removal in plan(sessions, policy, NOW)}
    apart = {
        removal.facts.id
        for namespace in ("a", "ab", "b")
        for removal in plan([facts for facts in sessions if facts.namespace == namespace], policy, NOW)
    }
    assert together == apart


@settings(max_examples=60)
@given(stored, st.integers(1, 60), st.integers(0, 60))
def test_what_is_too_old_today_is_too_old_tomorrow(sessions: list[SessionFacts], limit: int, later: int) -> None:
    policy = RetentionPolicy(default=Rule("r", any_age=timedelta(days=limit)))
    today = {removal.facts.id for removal in plan(sessions, policy, NOW)}
    assert today <= {removal.facts.id for removal in plan(sessions, policy, NOW + timedelta(days=later))}


def _may_go(facts: SessionFacts) -> bool:
    return facts.is_final and age_of(facts, NOW) >= timedelta(hours=1)

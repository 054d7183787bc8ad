"""What is decided about a RayService whose traffic moves step by step, without a cluster in sight."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from raykeeper.api.meta import JSON
from raykeeper.api.rayservice import RayService
from raykeeper.operator.rayservice.facts import (
    AdoptCluster,
    CreateCluster,
    DeleteCluster,
    DeleteRouting,
    MarkReplaced,
    MarkRolledBack,
    Phase,
    Plan,
    PointServices,
    RouteTraffic,
)
from raykeeper.operator.rayservice.plan import phase_of, plan
from raykeeper.operator.rayservice.serve_config import parse_serve_config, unpacked
from raykeeper.operator.rayservice.status import status_of, without_promotion
from raykeeper.operator.rayservice.upgrade.routes import RoutingFacts
from raykeeper.operator.rayservice.upgrade.steps import UNDIVIDED, Shares
from raykeeper.operator.rayservice.versions import Match
from support.rayservice_facts import NOW, RUNNING, a_service, ago, facts
from support.upgrade_facts import BROKEN, NEW, OLD, PACE, STRATEGY, stepwise, upgrading


def taken(service: RayService, *clusters: Any, **given: Any) -> Plan:
    return plan(service, stepwise(service, *clusters, **given), NOW)


def test_a_new_cluster_begins_with_nothing() -> None:
    first = taken(a_service("a", upgradeStrategy=STRATEGY), OLD)
    assert (first.active, first.pending, first.shares) == ("a", "web-zzzzz", UNDIVIDED)
    made = taken(a_service("a", "b", upgradeStrategy=STRATEGY), OLD)
    assert CreateCluster("b") in made.actions
    assert RouteTraffic((("a", 100),)) in made.actions
    begun = taken(upgrading((100, 100), (0, 0), moved=None), OLD, replace(NEW, head=None, ready_pods=0))
    assert (begun.shares, begun.look_at) == (Shares(100, 20, 0, None), NOW)


def test_a_step_is_said_before_it_is_done() -> None:
    service = upgrading((80, 70), (40, 30))
    step = taken(service, OLD, NEW)
    assert step.shares == Shares(80, 40, 40, NOW)
    assert RouteTraffic((("a", 70), ("b", 30))) in step.actions, "the world is made as the status says, not ahead of it"
    status = status_of(service, stepwise(service, OLD, NEW), step, "", NOW)
    both = status.active_service_status, status.pending_service_status
    assert [(one.target_capacity, one.traffic_routed_percent) for one in both] == [(80, 60), (40, 40)]
    assert [one.last_traffic_migrated_time for one in both] == [ago(0), ago(0)]


@pytest.mark.parametrize(
    ("new", "waits", "cause"),
    [
        (replace(NEW, ready_pods=0), "", "none of its pods"),
        (replace(NEW, serve=replace(RUNNING, has_goal=True, has_config=False)), "", "has not taken its capacity"),
        (replace(NEW, serve=BROKEN), "", "does not run every application"),
        (NEW, "Gateway web-gateway is not Programmed: no address", "no address"),
    ],
    ids=["pods", "capacity", "broken", "gateway"],
)
def test_traffic_stays_while_something_is_missing(new: Any, waits: str, cause: str) -> None:
    step = taken(upgrading(), OLD, new, waits=waits)
    assert step.shares == Shares(80, 40, 30, NOW - timedelta(seconds=60))
    assert cause in step.told


@pytest.mark.parametrize("paused", [None, 30])
@pytest.mark.parametrize(
    ("old", "new", "weights", "dead"),
    [
        (OLD, replace(NEW, ready_pods=0), (100, 0), "b"),
        (replace(OLD, ready_pods=0), NEW, (0, 100), "a"),
        (replace(OLD, ready_pods=0), replace(NEW, ready_pods=0), (70, 30), ""),
    ],
    ids=["new", "old", "both"],
)
def test_a_cluster_that_answers_nobody_gets_no_request_while_the_other_does(
    old: Any, new: Any, weights: tuple[int, int], dead: str, paused: int | None
) -> None:
    service = upgrading()
    there = replace(stepwise(service, old, new), pace=replace(PACE, pause_at=paused))
    step = plan(service, there, NOW)
    assert RouteTraffic((("a", weights[0]), ("b", weights[1]))) in step.actions
    assert PointServices("a", "b" if dead == "a" else "") in step.actions
    assert step.look_at is not None or not dead
    assert step.shares is not None
    assert step.shares.traffic == 30, "what was reached is not lost"
    assert (f"no pod of {dead} takes requests" in step.told) is bool(dead)


@pytest.mark.parametrize("traffic", [0, 100])
def test_a_cluster_that_has_no_share_gets_no_request(traffic: int) -> None:
    service = upgrading((100, 100 - traffic), (100, traffic))
    dead = (replace(OLD, ready_pods=0), NEW) if traffic == 0 else (OLD, replace(NEW, ready_pods=0))
    assert RouteTraffic((("a", 100 - traffic), ("b", traffic))) in taken(service, *dead).actions


def test_traffic_stays_while_the_route_has_other_weights() -> None:
    service = upgrading()
    routed = replace(stepwise(service, OLD, NEW), routing=RoutingFacts(True, "", {"a": 80, "b": 20}))
    assert plan(service, routed, NOW).shares == Shares(80, 40, 30, NOW - timedelta(seconds=60))


def test_an_old_cluster_whose_serve_answers_nobody_does_not_hold_the_new_one_up() -> None:
    silent = replace(OLD, serve=replace(RUNNING, is_current=False, has_goal=True, has_config=False))
    refusing = replace(OLD, serve=replace(RUNNING, has_goal=True, has_config=False, refusal="no"))
    slow = replace(OLD, serve=replace(RUNNING, has_goal=True, has_config=False))
    moved = [taken(upgrading(), old, NEW).shares or UNDIVIDED for old in (silent, refusing, slow)]
    assert [one.traffic for one in moved] == [40, 40, 30]


def test_the_new_cluster_takes_over_when_it_has_it_all_and_the_gateway_knows() -> None:
    service = upgrading((0, 0), (100, 100))
    over = taken(service, OLD, NEW)
    assert (over.active, over.pending, over.shares) == ("b", "", UNDIVIDED)
    assert taken(service, OLD, NEW, waits="not yet").active == "a"
    undone = without_promotion(service, over)
    assert (undone.active, undone.pending, undone.shares) == (
        "a",
        "b",
        Shares(0, 100, 100, NOW - timedelta(seconds=60)),
    )


def test_the_serve_service_follows_most_of_the_traffic() -> None:
    assert PointServices("a") in taken(upgrading((60, 50), (60, 50), moved=1), OLD, NEW).actions
    assert PointServices("a", "b") in taken(upgrading((60, 40), (60, 60), moved=1), OLD, NEW).actions


@pytest.mark.parametrize("old", [Match.SAME, Match.DIFFERENT], ids=["taken back", "a third spec"])
def test_another_spec_brings_the_traffic_back_first(old: Match) -> None:
    clusters = replace(OLD, match=old), replace(NEW, match=Match.DIFFERENT)
    step = taken(upgrading(), *clusters)
    assert (step.pending, step.is_rollback, step.shares) == ("b", True, Shares(80, 40, 20, NOW))
    back = taken(upgrading((100, 100), (20, 0)), *clusters)
    assert (back.active, back.pending) == ("a", "")
    assert not any(isinstance(action, DeleteCluster) for action in back.actions), "its last requests have time to end"
    dangling = taken(a_service("a", upgradeStrategy=STRATEGY), *clusters)
    assert MarkReplaced("b", NOW) in dangling.actions
    assert dangling.pending == ("web-zzzzz" if old is Match.DIFFERENT else "")


def test_a_new_cluster_that_never_had_traffic_is_dropped_at_once() -> None:
    service = a_service(
        "a",
        "b",
        status={"pendingServiceStatus": {"rayClusterName": "b", "targetCapacity": 20, "trafficRoutedPercent": 0}},
        upgradeStrategy=STRATEGY,
    )
    dropped = taken(service, replace(OLD, match=Match.SAME), replace(NEW, match=Match.DIFFERENT), waits="no Gateway")
    assert (dropped.pending, DeleteCluster("b", "b-uid") in dropped.actions) == ("", True)


def test_traffic_comes_back_at_once_from_a_dead_cluster() -> None:
    dead = replace(NEW, match=Match.DIFFERENT, ready_pods=0, head=None)
    assert taken(upgrading((40, 30), (80, 70), moved=1), OLD, dead).shares == Shares(100, 0, 0, NOW)


def test_a_broken_new_cluster_is_rolled_back_where_the_user_wants_it() -> None:
    broken = replace(NEW, serve=BROKEN)
    assert not taken(upgrading(), OLD, broken).is_rollback
    noted = taken(upgrading(), OLD, broken, rolls_back_unhealthy=True)
    assert MarkRolledBack("a", "goal", "Serve says that an application on b does not work") in noted.actions
    marked = replace(OLD, rolled_back="goal")
    assert taken(upgrading(), marked, broken, rolls_back_unhealthy=True).is_rollback
    assert taken(upgrading(), marked, NEW).is_rollback, "also when it recovers: somebody should look"
    after = taken(a_service("a", upgradeStrategy=STRATEGY), marked)
    assert (after.active, after.pending) == ("a", "")
    retried = taken(a_service("a", upgradeStrategy=STRATEGY), marked, goal="another")
    assert retried.pending == "web-zzzzz"


def test_clusters_of_another_version_are_taken_over_before_anything_moves() -> None:
    unknown = replace(NEW, match=Match.UNKNOWN)
    step = taken(upgrading(), replace(OLD, match=Match.UNKNOWN), unknown)
    assert [type(action) for action in step.actions if isinstance(action, AdoptCluster)] == [AdoptCluster] * 2
    assert step.shares == Shares(80, 40, 30, NOW - timedelta(seconds=60))


def test_a_spec_that_makes_no_sense_moves_nothing() -> None:
    for given in ({"is_valid": False}, {"pace": None}, {"is_valid": False, "pace": None}):
        step = taken(upgrading(), OLD, NEW, **given)
        assert (step.active, step.pending) == ("a", "b")
        assert step.shares == Shares(80, 40, 30, NOW - timedelta(seconds=60))


def test_a_cluster_that_is_gone_leaves_all_to_the_other() -> None:
    lost = taken(upgrading(), NEW)
    assert (lost.active, lost.pending, lost.shares) == ("b", "", UNDIVIDED)
    remade = taken(upgrading(), OLD)
    assert (remade.pending, remade.shares) == ("b", UNDIVIDED)
    going = taken(upgrading(), OLD, replace(NEW, is_going=True))
    assert (going.pending, going.shares) == ("web-zzzzz", UNDIVIDED)


def test_without_steps_the_way_in_follows_the_cluster_that_serves() -> None:
    service = a_service("a", "b")
    there = facts(replace(OLD), replace(NEW, ready_pods=0), routing=RoutingFacts(True))
    step = plan(service, there, NOW)
    assert (RouteTraffic((("a", 100),)) in step.actions, step.shares) == (True, None)


def test_a_route_that_is_not_there_is_looked_for_again() -> None:
    service = a_service("a", upgradeStrategy=STRATEGY)
    missing = stepwise(
        service, replace(OLD, match=Match.SAME), routing=RoutingFacts(True, "HTTPRoute shop is not there")
    )
    assert plan(service, missing, NOW).look_at == NOW + timedelta(seconds=5)


def test_suspension_waits_until_the_way_in_is_gone() -> None:
    suspending: JSON = {
        "type": "Suspending",
        "status": "True",
        "reason": "Any",
        "message": "",
        "lastTransitionTime": ago(1),
    }
    service = a_service(suspend=True, status={"conditions": [suspending]})
    owned = RoutingFacts(owned={("Gateway", "web-gateway"): "uid"})
    left = facts(routing=owned)
    assert plan(service, left, NOW).actions == (DeleteRouting("Gateway", "web-gateway", "uid"),)
    assert phase_of(service, facts(), NOW) is Phase.SUSPENDED


def test_a_config_is_kept_and_comes_back_with_another_capacity() -> None:
    config = parse_serve_config("applications: [{name: shop, import_path: a:b}]")
    kept = unpacked(config.with_capacity(40).packed())
    assert kept is not None
    assert (kept.capacity, kept.with_capacity(60)) == (40, config.with_capacity(60))
    assert kept.has_same_applications(config)
    for text in ("", "!", "AAAA", "eJwDAAAAAAE="):
        assert unpacked(text) is None

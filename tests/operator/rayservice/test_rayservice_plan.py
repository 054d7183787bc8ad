"""What is decided about a RayService, without a cluster in sight."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from raykeeper.api.conditions import Condition
from raykeeper.api.meta import JSON
from raykeeper.api.rayservice import AppStatus, RayService
from raykeeper.operator.rayhead.poller import Reading
from raykeeper.operator.rayservice.answers import LONGEST_MESSAGE, MOST_APPLICATIONS, applications, proxy_health
from raykeeper.operator.rayservice.clusters import config_targets, upgrades
from raykeeper.operator.rayservice.facts import (
    AdoptCluster,
    AppendGroups,
    CreateCluster,
    DeleteCluster,
    DeleteService,
    Facts,
    LabelHead,
    MarkReplaced,
    NoteConfig,
    Phase,
    Plan,
    PointServices,
    ServeFacts,
    SetSuspend,
)
from raykeeper.operator.rayservice.plan import plan
from raykeeper.operator.rayservice.states import READY, SUSPENDED, SUSPENDING
from raykeeper.operator.rayservice.status import linked, status_of, without_promotion
from raykeeper.operator.rayservice.versions import Match
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared.history import History
from raykeeper.ray.serve import ApplicationStatus, DeploymentStatus
from support.rayservice_facts import NOW, RUNNING, a_cluster, a_service, ago, facts

DEPLOYING = replace(RUNNING, applications={"shop": AppStatus("DEPLOYING")})
NEW = "web-zzzzz"


def a_condition(kind: str, status: str, reason: str = "Any", **fields: Any) -> JSON:
    given = {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": ago(60)}
    return given | {"observedGeneration": 3} | fields


def names(taken: Plan) -> tuple[str, str]:
    return taken.active, taken.pending


def test_a_name_is_written_down_before_its_cluster_is_made() -> None:
    taken = plan(a_service(), facts(endpoints=0), NOW)
    assert (names(taken), taken.actions, taken.look_at) == (("", NEW), (), NOW)
    taken = plan(a_service(pending=NEW), facts(endpoints=0), NOW)
    assert (names(taken), taken.actions) == (("", NEW), (CreateCluster(NEW),))


def test_the_first_cluster_takes_over_once_serve_runs() -> None:
    for serve in (DEPLOYING, replace(RUNNING, is_current=False), replace(RUNNING, has_config=False), ServeFacts()):
        assert names(plan(a_service(pending="b"), facts(a_cluster("b", serve=serve)), NOW)) == ("", "b")
    taken = plan(a_service(pending="b"), facts(a_cluster("b", ready_pods=0), endpoints=0), NOW)
    assert (names(taken), taken.actions) == (("b", ""), (PointServices("b"),))


def test_a_service_at_rest_has_its_services_looked_after_and_nothing_else() -> None:
    taken = plan(a_service("a"), facts(a_cluster("a")), NOW)
    assert taken == Plan(Phase.WORKING, "a", "", (PointServices("a"),))


def test_a_changed_spec_gets_a_new_cluster_unless_upgrades_are_off() -> None:
    changed = a_cluster("a", Match.DIFFERENT)
    assert names(plan(a_service("a"), facts(changed), NOW)) == ("a", NEW)
    assert names(plan(a_service("a"), facts(changed, upgrades=False), NOW)) == ("a", "")
    appended = plan(a_service("a"), facts(a_cluster("a", Match.APPENDED), upgrades=False), NOW)
    assert appended.actions == (AppendGroups("a"), PointServices("a"))


@pytest.mark.parametrize(
    ("strategy", "has_zero_downtime", "expected"),
    [(None, True, True), (None, False, False), ("", False, False), ("None", True, False), ("NewCluster", False, True)],
)
def test_the_strategy_decides_and_the_variable_where_there_is_none(
    strategy: str | None, has_zero_downtime: bool, expected: bool
) -> None:
    given = None if strategy is None else {"type": strategy}
    assert upgrades(a_service(upgradeStrategy=given), has_zero_downtime=has_zero_downtime) is expected


def test_traffic_moves_only_to_pods_that_are_ready() -> None:
    service, old = a_service("a", "b"), a_cluster("a", Match.DIFFERENT)
    waiting = plan(service, facts(old, a_cluster("b", ready_pods=0)), NOW)
    assert names(waiting) == ("a", "b")
    assert waiting.look_at == NOW + timedelta(seconds=1)
    assert "none of its pods" in waiting.told
    assert PointServices("a") in waiting.actions
    assert names(plan(service, facts(old, a_cluster("b")), NOW)) == ("b", "")
    dead = plan(service, facts(old, a_cluster("b", ready_pods=0), endpoints=0), NOW)
    assert names(dead) == ("b", ""), "nothing can be lost"


def test_traffic_that_was_moved_before_a_crash_stays_where_it_is() -> None:
    found = facts(a_cluster("a"), a_cluster("b", Match.DIFFERENT, serve=ServeFacts()), serving="b")
    assert names(plan(a_service("a", "b"), found, NOW)) == ("b", "")


def test_a_promotion_whose_services_were_refused_is_none() -> None:
    service, found = a_service("a", "b"), facts(a_cluster("a", Match.DIFFERENT), a_cluster("b"))
    refused = without_promotion(service, plan(service, found, NOW))
    assert names(refused) == ("a", "b")
    at_rest = plan(a_service("a"), found, NOW)
    assert without_promotion(a_service("a"), at_rest) == at_rest


def test_a_cluster_that_was_replaced_has_its_time_and_then_goes() -> None:
    service = a_service("b", rayClusterDeletionDelaySeconds=30)
    taken = plan(service, facts(a_cluster("a"), a_cluster("b")), NOW)
    assert taken.actions[-1] == MarkReplaced("a", NOW)
    assert taken.look_at == NOW + timedelta(seconds=30)
    waiting = plan(service, facts(a_cluster("a", replaced_at=NOW - timedelta(seconds=29)), a_cluster("b")), NOW)
    assert (waiting.actions, waiting.look_at) == ((PointServices("b"),), NOW + timedelta(seconds=1))
    over = plan(service, facts(a_cluster("a", replaced_at=NOW - timedelta(seconds=30)), a_cluster("b")), NOW)
    assert over.actions[-1] == DeleteCluster("a", "a-uid")
    at_once = plan(a_service("b", rayClusterDeletionDelaySeconds=0), facts(a_cluster("a"), a_cluster("b")), NOW)
    assert at_once.actions[-1] == DeleteCluster("a", "a-uid")


def test_another_change_during_an_upgrade_replaces_the_new_cluster() -> None:
    old, new = a_cluster("a", Match.DIFFERENT), a_cluster("b", Match.DIFFERENT, serve=DEPLOYING)
    taken = plan(a_service("a", "b"), facts(old, new), NOW)
    assert (names(taken), taken.actions[0]) == (("a", NEW), DeleteCluster("b", "b-uid"))
    taken_back = plan(a_service("a", "b"), facts(a_cluster("a"), new), NOW)
    assert (names(taken_back), taken_back.actions[0]) == (("a", ""), DeleteCluster("b", "b-uid"))
    first = plan(a_service(pending="b"), facts(new, upgrades=False, endpoints=0), NOW)
    assert names(first) == ("", NEW), "a service that never served is mended, whatever its strategy"


def test_clusters_that_are_gone_or_going_are_made_anew() -> None:
    assert names(plan(a_service("a"), facts(endpoints=0), NOW)) == ("", NEW)
    going = plan(a_service("a"), facts(a_cluster("a", is_going=True)), NOW)
    assert (names(going), going.actions) == (("a", NEW), (PointServices("a"),))
    assert names(plan(a_service("a", "b"), facts(a_cluster("a"), a_cluster("b", is_going=True)), NOW)) == ("a", NEW)


def test_a_status_that_was_lost_is_found_again_where_the_traffic_goes() -> None:
    lost = facts(a_cluster("a"), a_cluster("b"), serving="a")
    taken = plan(a_service(), lost, NOW)
    assert names(taken) == ("a", "")
    assert not any(isinstance(one, DeleteCluster | CreateCluster) for one in taken.actions)
    assert MarkReplaced("b", NOW) in taken.actions
    going = facts(a_cluster("a", is_going=True), serving="a")
    assert names(plan(a_service(), going, NOW)) == ("", NEW)


def test_a_moment_in_the_future_does_not_keep_a_replaced_cluster() -> None:
    marked = a_cluster("b", replaced_at=datetime.max.replace(tzinfo=UTC))
    assert plan(a_service("a"), facts(a_cluster("a"), marked), NOW).look_at == NOW + timedelta(seconds=60)


def test_clusters_of_another_version_are_taken_over_first() -> None:
    old, new = a_cluster("a", Match.UNKNOWN), a_cluster("b", Match.UNKNOWN)
    taken = plan(a_service("a", "b"), facts(old, new), NOW)
    assert names(taken) == ("a", "b")
    assert taken.actions[:2] == (AdoptCluster("a", old.marks), AdoptCluster("b", new.marks))
    status = status_of(
        a_service("a", "b", status={"observedGeneration": 2}), facts(old, new), taken, "", NOW, is_adopting=True
    )
    assert status.observed_generation == 2, "which spec the other one saw last decides about the next pass"


def test_a_config_goes_to_the_new_cluster_or_else_to_the_one_that_serves() -> None:
    changed = a_cluster("a", Match.DIFFERENT)
    assert config_targets(a_service("a"), facts(a_cluster("a"))) == {"a"}
    assert config_targets(a_service("a"), facts(changed)) == set(), "it may need the new image"
    assert config_targets(a_service("a"), facts(changed, upgrades=False)) == {"a"}
    assert config_targets(a_service("a", "b"), facts(changed, a_cluster("b"))) == {"b"}
    assert config_targets(a_service("a"), facts(a_cluster("a", Match.UNKNOWN))) == set()
    assert config_targets(a_service("a"), facts(a_cluster("a"), is_valid=False)) == set()


def test_heads_are_labelled_on_both_clusters() -> None:
    sick = a_cluster("a", Match.DIFFERENT)
    sick = replace(sick, head=replace(sick.head, is_proxy_healthy=False)) if sick.head else sick
    new = a_cluster("b", serve=replace(DEPLOYING, was_sent=True))
    new = replace(new, head=replace(new.head, serve_label="false")) if new.head else new
    actions = plan(a_service("a", "b"), facts(sick, new), NOW).actions
    assert {LabelHead("a", "a-head", "false"), LabelHead("b", "b-head", "true"), NoteConfig("b")} < set(actions)
    excluded = plan(a_service("a", excludeHeadPodFromServeSvc=True), facts(a_cluster("a")), NOW)
    assert LabelHead("a", "a-head", "false") in excluded.actions
    without = plan(a_service("a"), facts(a_cluster("a", head=None)), NOW)
    assert without.actions == (PointServices("a"),)


def test_a_proxy_that_is_silent_for_a_moment_is_not_given_up() -> None:
    assert proxy_health(Reading(), NOW) == (None, None)
    assert proxy_health(Reading(True, True, NOW), NOW) == (True, None)
    silent: Reading[bool] = Reading(True, True, NOW, "no answer", NOW)
    assert proxy_health(silent, NOW) == (None, NOW + timedelta(seconds=5))
    assert proxy_health(silent, NOW + timedelta(seconds=5)) == (False, None)


def test_an_invalid_spec_begins_nothing_and_ends_nothing() -> None:
    service = a_service("a", suspend=True)
    taken = plan(service, facts(a_cluster("a", Match.DIFFERENT), is_valid=False), NOW)
    assert (taken.phase, names(taken), taken.actions) == (Phase.WORKING, ("a", ""), (PointServices("a"),))
    promoted = plan(a_service("a", "b"), facts(a_cluster("a"), a_cluster("b"), is_valid=False), NOW)
    assert names(promoted) == ("b", ""), "what was begun is brought to its end"


def test_suspension_is_said_then_done_and_cannot_be_taken_back_half_way() -> None:
    service = a_service("a", suspend=True)
    found = facts(a_cluster("a"), services={"web-serve-svc": "s-uid"})
    assert plan(service, found, NOW) == Plan(Phase.SUSPENDING, look_at=NOW)
    said = {"conditions": [a_condition(SUSPENDING, "True")]}
    for wanted in (True, False):
        taken = plan(a_service(status=said, suspend=wanted), found, NOW)
        assert taken.actions == (DeleteCluster("a", "a-uid"), DeleteService("web-serve-svc", "s-uid"))
    done = plan(a_service(status=said, suspend=True), facts(endpoints=0), NOW)
    assert done == Plan(Phase.SUSPENDED)
    suspended = {"conditions": [a_condition(SUSPENDED, "True")]}
    assert plan(a_service(status=suspended, suspend=True), facts(), NOW).phase is Phase.SUSPENDED
    assert plan(a_service(status=suspended), facts(endpoints=0), NOW).phase is Phase.RESUMING


@pytest.mark.parametrize(("timeout", "expected"), [("59", True), ("59s", True), ("61", False), ("1h", False)])
def test_a_service_that_does_not_begin_to_serve_is_given_up(timeout: str, expected: bool) -> None:
    annotations = {"ray.io/initializing-timeout": timeout}
    initializing = {"conditions": [a_condition(READY, "False", "Initializing")]}
    service = a_service(pending="b", annotations=annotations, status=initializing)
    assert (plan(service, facts(a_cluster("b", serve=DEPLOYING)), NOW).phase is Phase.TIMED_OUT) is expected


def test_what_was_given_up_is_torn_down_and_begins_anew_with_another_spec() -> None:
    over = {"conditions": [a_condition(READY, "False", "InitializingTimeout")]}
    taken = plan(a_service(status=over), facts(a_cluster("b")), NOW)
    assert taken.actions == (DeleteCluster("b", "b-uid"),)
    before = {"conditions": [a_condition(READY, "False", "InitializingTimeout", observedGeneration=2)]}
    anew = plan(a_service(status=before), facts(endpoints=0), NOW)
    assert (anew.phase, anew.pending) == (Phase.WORKING, NEW)


@pytest.mark.parametrize(
    ("after", "state", "expected"),
    [
        ("1m", "UNHEALTHY", NEW),
        ("1m", "DEPLOY_FAILED", NEW),
        ("61s", "UNHEALTHY", ""),
        ("1m", "DEPLOYING", ""),
        ("", "UNHEALTHY", ""),
    ],
)
def test_broken_applications_get_another_cluster_only_where_that_was_asked_for(
    after: str, state: str, expected: str
) -> None:
    broken = replace(RUNNING, applications={"shop": AppStatus(state)})
    said = {"activeServiceStatus": {"rayClusterName": "a", "unhealthySince": ago(60)}}
    service = a_service("a", annotations={"raykeeper.io/replace-unhealthy-after": after}, status=said)
    taken = plan(service, facts(a_cluster("a", serve=broken)), NOW)
    assert names(taken) == ("a", expected)
    assert taken.look_at == {"1m": NOW if expected else None, "61s": NOW + timedelta(seconds=1)}.get(after)
    unsaid = plan(
        msgspec.structs.replace(service, status=a_service("a").status), facts(a_cluster("a", serve=broken)), NOW
    )
    assert names(unsaid) == ("a", ""), "its time begins now"
    assert (unsaid.look_at is None) == (taken.look_at is None)


def serving(state: str, **changes: Any) -> Facts:
    return facts(a_cluster("a", serve=replace(RUNNING, applications={"shop": AppStatus(state)}, **changes)))


def test_the_time_of_broken_applications_does_not_begin_while_they_are_deployed() -> None:
    service = a_service("a", annotations={"raykeeper.io/replace-unhealthy-after": "10m"})
    planned: list[str] = []
    for minute, state in [(0, "RUNNING"), (1, "DEPLOYING"), (15, "UNHEALTHY"), (24, "UNHEALTHY"), (25, "UNHEALTHY")]:
        now, seen = NOW + timedelta(minutes=minute), serving(state)
        taken = plan(service, seen, now)
        planned.append(taken.pending)
        service = msgspec.structs.replace(service, status=status_of(service, seen, taken, "", now))
    assert planned == ["", "", "", "", NEW]


def test_since_when_applications_are_broken_stands_until_serve_says_otherwise() -> None:
    said = {"activeServiceStatus": {"rayClusterName": "a", "unhealthySince": ago(60)}}
    silent = serving("UNHEALTHY", is_current=False)
    for seen, since in [(serving("UNHEALTHY"), ago(60)), (silent, ago(60)), (serving("DEPLOYING"), None)]:
        service = a_service("a", status=said)
        status = status_of(service, seen, plan(service, seen, NOW), "", NOW)
        assert status.active_service_status.unhealthy_since == since


def test_clusters_have_links_only_where_the_history_is_known() -> None:
    status = a_service("a").status
    known = linked(status, partial(History(HistorySettings(url="https://history")).url, "ns"))
    links = [known.active_service_status.history_url, known.pending_service_status.history_url]
    assert links == ["https://history/s/ns/a/latest/", ""]
    assert linked(known, lambda _: "") == status


def test_suspend_of_the_cluster_is_passed_on() -> None:
    held = a_cluster("a", needs_suspend=True)
    assert plan(a_service("a"), facts(held), NOW).actions[0] == SetSuspend("a", suspend=True)


def conditions_of(service: RayService, found: Facts) -> dict[str, Condition]:
    status = status_of(service, found, plan(service, found, NOW), "", NOW)
    return {condition.type: condition for condition in status.conditions}


def test_the_time_of_initializing_counts_from_the_moment_the_spec_was_mended() -> None:
    broken = {"conditions": [a_condition(READY, "False", "ValidationFailed")]}
    ready = conditions_of(a_service(status=broken), facts(endpoints=0))["Ready"]
    assert (ready.reason, ready.last_transition_time) == ("Initializing", ago(0))


def test_what_was_ready_says_that_it_has_no_endpoints() -> None:
    was = {"conditions": [a_condition(READY, "True", "NonZeroServeEndpoints")]}
    found = conditions_of(a_service("a", status=was), facts(a_cluster("a"), endpoints=0))
    assert (found["Ready"].status, found["Ready"].reason) == ("False", "ZeroServeEndpoints")


def test_a_service_that_serve_runs_and_nobody_reaches_says_so() -> None:
    nobody = facts(a_cluster("a", ready_pods=0), endpoints=0)
    ready = told_about(a_service("a"), nobody)
    assert ready.message == "Serve runs on RayCluster a, and no pod behind Service web-serve-svc takes requests"
    alone = a_service("a", excludeHeadPodFromServeSvc=True)
    assert "excludeHeadPodFromServeSvc keeps requests from its head" in told_about(alone, nobody).message


def test_what_the_api_server_refuses_is_told() -> None:
    refusal = 'create services ns/shop: 422 Invalid: Service "shop" is invalid'
    service, there = a_service(pending="a"), facts(a_cluster("a"), endpoints=0)
    status = status_of(service, there, without_promotion(service, plan(service, there, NOW)), "", NOW, refusal=refusal)
    assert next(one.message for one in status.conditions if one.type == READY) == refusal


def told_about(service: RayService, known: Facts) -> Condition:
    status = status_of(service, known, plan(service, known, NOW), "", NOW)
    return next(one for one in status.conditions if one.type == READY)


def test_a_service_without_applications_says_so() -> None:
    empty = facts(a_cluster("b", serve=ServeFacts(is_current=True)), endpoints=0, has_applications=False)
    found = conditions_of(a_service(pending="b", serveConfigV2=""), empty)
    assert found["Ready"].message == "serveConfigV2 has no applications"
    assert found["ServeApplicationsHealthy"].reason == "NoApplications"


def test_what_serve_said_last_stands_until_it_is_asked_again() -> None:
    said = {"conditions": [a_condition("ServeApplicationsHealthy", "True", "AllRunning")]}
    unasked = facts(a_cluster("a", serve=ServeFacts()))
    assert conditions_of(a_service("a", status=said), unasked)["ServeApplicationsHealthy"].status == "True"
    silent = facts(a_cluster("a", serve=ServeFacts(failure="no answer")))
    found = conditions_of(a_service("a", status=said), silent)["ServeApplicationsHealthy"]
    assert (found.status, found.reason) == ("Unknown", "NoAnswer")


def test_a_status_that_says_the_same_is_not_written_again() -> None:
    service, found = a_service("a"), facts(a_cluster("a"))
    first = status_of(service, found, plan(service, found, NOW), "", NOW)
    again = msgspec.structs.replace(service, status=first)
    later = NOW + timedelta(hours=1)
    assert status_of(again, found, plan(again, found, later), "", later) == first


def test_what_serve_says_is_bounded() -> None:
    answer = {str(number): ApplicationStatus("RUNNING", "x" * 10_000) for number in range(1000)}
    found = applications(answer)
    assert len(found) == MOST_APPLICATIONS
    assert {len(application.message) for application in found.values()} == {LONGEST_MESSAGE}


def test_what_serve_says_fits_into_an_object_of_kubernetes() -> None:
    deployments = {f"d{number}": DeploymentStatus("UNHEALTHY", "\x01" * 5000) for number in range(2000)}
    said = {"x" * 5000: ApplicationStatus("UNHEALTHY", "\U0001f600" * 5000, deployments)}
    told = applications(said | {"shop": ApplicationStatus("RUNNING")})
    assert len(msgspec.json.encode(told)) < 500_000
    assert applications({"shop": ApplicationStatus("RUNNING", "", {"a": DeploymentStatus("HEALTHY")})})

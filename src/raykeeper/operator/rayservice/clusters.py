"""Which clusters a RayService has: the one that serves, the one that is to take over, and those that must go. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from raykeeper.api.rayservice import RayService
from raykeeper.operator.rayservice.facts import (
    Action,
    AdoptCluster,
    AppendGroups,
    ClusterFacts,
    CreateCluster,
    DeleteCluster,
    Facts,
    MarkReplaced,
    MarkRolledBack,
    SetSuspend,
)
from raykeeper.operator.rayservice.states import UpgradeType
from raykeeper.operator.rayservice.stepping import (
    direction,
    routed_to_new,
    shares_of,
    view,
    was_rolled_back,
    why_roll_back,
)
from raykeeper.operator.rayservice.upgrade.options import APPROVED
from raykeeper.operator.rayservice.upgrade.steps import Direction, Shares, is_over, next_step
from raykeeper.operator.rayservice.versions import Match

DELETION_DELAY_SECONDS: Final = 60
"""How long a cluster lives on that another took the place of, so that its requests end. KubeRay's number."""
READY_POD_SECONDS: Final = 1.0
"""How soon the pods of a new cluster are looked at again: nothing else tells that one became ready."""


@dataclass(frozen=True)
class Choice:
    """The clusters that the status should name, and what that takes."""

    active: str
    pending: str
    actions: tuple[Action, ...] = ()
    is_promotion: bool = False
    """The pending cluster takes over now."""
    told: str = ""
    """Why it does not yet."""
    shares: Shares | None = None
    """What each of the two should have; None where traffic does not move step by step."""
    is_rollback: bool = False
    """Traffic goes back to the active cluster."""
    look_at: datetime | None = None
    """When to look again although nothing happens."""


def upgrades(service: RayService, *, has_zero_downtime: bool) -> bool:
    """Whether a changed spec gets a new cluster. `ENABLE_ZERO_DOWNTIME=false` counts where the spec says nothing."""
    strategy = service.spec.upgrade_strategy
    if strategy is None or not strategy.type:
        return has_zero_downtime
    return strategy.type != UpgradeType.NONE


def config_targets(service: RayService, facts: Facts) -> set[str]:
    """The clusters that are to have the present Serve config: the new one, else the one that serves.

    A config that comes with a changed cluster may need its new image, so the old cluster is not given it.
    """
    status = service.status
    pending = status.pending_service_status.ray_cluster_name
    if not facts.is_valid:
        return set()
    if pending:
        return {pending} & _known(facts)
    active = facts.clusters.get(status.active_service_status.ray_cluster_name)
    if active is None or active.match is Match.UNKNOWN or (active.match is Match.DIFFERENT and facts.upgrades):
        return set()
    return {active.name}


def _known(facts: Facts) -> set[str]:
    return {cluster.name for cluster in facts.clusters.values() if cluster.match is not Match.UNKNOWN}


def choose(service: RayService, facts: Facts, now: datetime, *, is_given_up: bool = False) -> Choice:
    """Where the clusters go from here. `is_given_up`: the user wants another one in place of the one that serves."""
    status = service.status
    active_name = status.active_service_status.ray_cluster_name
    pending_name = status.pending_service_status.ray_cluster_name
    active, pending = facts.clusters.get(active_name), facts.clusters.get(pending_name)
    if active is None:
        if (serving := _serving(facts, pending_name)) is not None:
            return Choice(serving.name, pending_name)  # the status was lost, or put back as it once was
        active_name = ""
    if (moving := _moving(service, facts, active, pending, now)) is not None:
        return moving
    if pending is not None and (waits := _takes_over(active, pending, facts)) is not None:
        promotion = Choice(pending.name, "", is_promotion=True)
        return promotion if not waits else _with(Choice(active_name, pending_name, told=waits), facts, active, pending)
    if not facts.is_valid:
        return Choice(active_name, pending_name)
    if adopted := [AdoptCluster(one.name, one.marks) for one in (active, pending) if one and _is_unknown(one)]:
        return Choice(active_name, pending_name, tuple(adopted))
    if pending_name:
        return _pending(service, facts, active, pending, Choice(active_name, pending_name))
    if active is None or active.is_going or _is_outdated(active, facts) or is_given_up:
        return Choice(active_name, _new_name(service, facts))
    return _with(Choice(active_name, ""), facts, active)


def _moving(
    service: RayService, facts: Facts, active: ClusterFacts | None, pending: ClusterFacts | None, now: datetime
) -> Choice | None:
    """Where traffic moves step by step; None where it does not, or there is nothing to move it between."""
    if not facts.is_stepwise or pending is None or pending.is_going:
        return None
    if active is not None and not active.is_going:
        return _step(service, facts, active, pending, now)
    if active is None and shares_of(service).traffic:
        return Choice(pending.name, "", is_promotion=True)  # requests go there, and nowhere else
    return None


def _serving(facts: Facts, pending: str) -> ClusterFacts | None:
    """The cluster that traffic goes to although the status does not name it."""
    found = facts.clusters.get(facts.serving)
    return found if found is not None and not found.is_going and found.name != pending else None


def _is_outdated(active: ClusterFacts, facts: Facts) -> bool:
    return active.match is Match.DIFFERENT and facts.upgrades and not was_rolled_back(active, facts)


def _step(service: RayService, facts: Facts, active: ClusterFacts, pending: ClusterFacts, now: datetime) -> Choice:
    """Traffic moves from one cluster to the other step by step, or back."""
    shares = shares_of(service)
    routed = routed_to_new(shares, active, pending)
    is_diverted = routed != shares.traffic
    told = f"{routed} % of the traffic goes to {pending.name}"
    if is_diverted:
        told += f", and not {shares.traffic} %: no pod of {active.name if routed else pending.name} takes requests"
    held = Choice(active.name, pending.name, told=told, shares=shares)
    if not facts.is_valid or facts.pace is None:
        return held
    if adopted := [AdoptCluster(one.name, one.marks) for one in (active, pending) if _is_unknown(one)]:
        return replace(held, actions=tuple(adopted))
    if cause := why_roll_back(active, pending, facts):
        return replace(held, actions=(MarkRolledBack(active.name, facts.goal, cause),), look_at=now)
    way, seen = direction(active, pending, facts), view(service, facts, active, pending)
    is_back = way is Direction.BACK
    is_told = not seen.traffic_waits or (is_back and shares.moved_at is None)
    if is_over(shares, way) and is_told:
        return _ended(active, pending, way, shares)
    step = next_step(shares, way, facts.pace, seen, now)
    told = f"{told}: {step.told}"
    look_at: datetime | None = step.look_at or now + timedelta(seconds=READY_POD_SECONDS)
    if step.is_paused:
        told += f"; to go on, kubectl annotate rayservice {service.metadata.name} {APPROVED}={pending.name}"
        look_at = now + timedelta(seconds=READY_POD_SECONDS) if is_diverted else None
    choice = replace(held, shares=step.shares, told=told, is_rollback=is_back, look_at=look_at)
    return _with(choice, facts, active, pending)


def _ended(active: ClusterFacts, pending: ClusterFacts, way: Direction, shares: Shares) -> Choice:
    """One cluster has it all. The other lives on for its deletion delay, so that its requests end, if it had some."""
    if way is Direction.FORWARD:
        return Choice(pending.name, "", is_promotion=True)
    dropped = (DeleteCluster(pending.name, pending.uid),) if shares.moved_at is None else ()
    return Choice(active.name, "", dropped)


def _pending(
    service: RayService, facts: Facts, active: ClusterFacts | None, pending: ClusterFacts | None, now: Choice
) -> Choice:
    """A cluster is on its way. One that was made for another spec is not waited for."""
    if pending is None:
        return Choice(now.active, now.pending, (CreateCluster(now.pending),))
    if pending.is_going:
        return Choice(now.active, _new_name(service, facts))
    if pending.match is not Match.DIFFERENT:
        return _with(now, facts, active, pending)
    is_served = active is not None and not active.is_going
    dropped = (DeleteCluster(pending.name, pending.uid),)
    if is_served and active is not None and active.match is not Match.DIFFERENT:
        return Choice(now.active, "", dropped)  # the change was taken back
    if facts.upgrades or not is_served:
        return Choice(now.active, _new_name(service, facts), dropped)
    return _with(now, facts, active, pending)


def _with(choice: Choice, facts: Facts, *clusters: ClusterFacts | None) -> Choice:
    """The same clusters, changed in place as far as that goes."""
    actions: list[Action] = []
    for cluster in clusters:
        if cluster is None or cluster.is_going or not facts.is_valid:
            continue
        if cluster.match is Match.APPENDED:
            actions.append(AppendGroups(cluster.name))
        if cluster.needs_suspend is not None:
            actions.append(SetSuspend(cluster.name, cluster.needs_suspend))
    return replace(choice, actions=tuple(actions))


def _takes_over(active: ClusterFacts | None, pending: ClusterFacts, facts: Facts) -> str | None:
    """Empty: now. Else what a cluster that Serve runs on still lacks; None: Serve does not run there yet."""
    if facts.serving == pending.name and not facts.is_stepwise:
        return ""  # traffic goes there already: whoever moved it did not get to say so
    is_wanted = not facts.is_valid or pending.match in (Match.SAME, Match.APPENDED)
    has_config = pending.serve.has_config or not facts.is_valid
    if pending.is_going or not is_wanted or not has_config or not pending.serve.is_running:
        return None
    if active is None or pending.ready_pods or not facts.endpoints:
        return ""
    return f"Serve runs on {pending.name}, and none of its pods that take requests is ready yet"


def _is_unknown(cluster: ClusterFacts) -> bool:
    return cluster.match is Match.UNKNOWN and not cluster.is_going


def _new_name(service: RayService, facts: Facts) -> str:
    return f"{service.metadata.name}-{facts.random_end}"


def plan_replaced(
    service: RayService, facts: Facts, kept: set[str], now: datetime
) -> Iterator[tuple[Action | None, datetime | None]]:
    """What becomes of clusters that are no longer needed: an action, or the moment for the next look."""
    seconds = service.spec.ray_cluster_deletion_delay_seconds
    delay = timedelta(seconds=DELETION_DELAY_SECONDS if seconds is None else seconds)
    for cluster in facts.clusters.values():
        if cluster.name in kept or cluster.is_going:
            continue
        due = min(cluster.replaced_at or now, now) + delay  # no mark is ahead of us, whatever clock it is from
        if cluster.replaced_at is None and delay:
            yield MarkReplaced(cluster.name, now), due
        elif now >= due:
            yield DeleteCluster(cluster.name, cluster.uid), None
        else:
            yield None, due

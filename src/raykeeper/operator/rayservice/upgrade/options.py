"""What a RayService says about its incremental upgrades: options of the spec, and annotations of ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from raykeeper.api.rayservice import ClusterUpgradeOptions, RayService
from raykeeper.api.syntax import is_dns_1123_subdomain
from raykeeper.operator.rayservice.states import UpgradeType
from raykeeper.operator.rayservice.upgrade.steps import WHOLE, Pace
from raykeeper.operator.shared.features import is_autoscaled
from raykeeper.operator.shared.violations import Violation, has_value, is_missing

PAUSE_AT: Final = "raykeeper.io/pause-upgrade-at"
"""Annotation: with so many percent of the traffic the new cluster waits until it is approved."""
APPROVED: Final = "raykeeper.io/approve-upgrade"
"""Annotation: the name of the new cluster that may go on. The next upgrade has another, and waits again."""
ROLLBACK_UNHEALTHY: Final = "raykeeper.io/rollback-unhealthy"
"""Annotation: `true` has an upgrade rolled back when Serve calls an application on the new cluster broken."""

ROLLBACK_ERRORS: Final = "raykeeper.io/rollback-error-percent"
"""Annotation: an upgrade is rolled back when more than so many percent of the requests to the new cluster fail."""

PERCENTAGE: Final = re.compile(r"[0-9]{1,2}(\.[0-9]{1,3})?")
OPTIONS: Final = "spec.upgradeStrategy.clusterUpgradeOptions"


def is_incremental(service: RayService) -> bool:
    """Whether traffic moves step by step."""
    strategy = service.spec.upgrade_strategy
    return strategy is not None and strategy.type == UpgradeType.INCREMENTAL


def pace_of(service: RayService, pending: str) -> Pace | None:
    """How fast the user wants it; None where it is not said, or cannot be done."""
    strategy = service.spec.upgrade_strategy
    options = strategy.cluster_upgrade_options if strategy else None
    if not is_incremental(service) or options is None or any(violations(service)):
        return None
    text = service.metadata.annotations.get(PAUSE_AT, "")
    is_held = bool(text) and service.metadata.annotations.get(APPROVED) != pending
    interval = timedelta(seconds=options.interval_seconds)
    return Pace(options.step_size_percent, interval, options.max_surge_percent, int(text) if is_held else None)


def attached_route_name(service: RayService) -> str:
    """The user's own HTTPRoute, in which the weights are kept; empty where we make one."""
    strategy = service.spec.upgrade_strategy
    options = strategy.cluster_upgrade_options if strategy else None
    return (options.http_route_name or "") if options else ""


def rolls_back_unhealthy(service: RayService) -> bool:
    return service.metadata.annotations.get(ROLLBACK_UNHEALTHY) == "true"


def error_limit(service: RayService) -> float | None:
    """Percent of the requests that may fail on a new cluster; None where nobody set a limit."""
    text = service.metadata.annotations.get(ROLLBACK_ERRORS, "")
    is_set = is_incremental(service) and PERCENTAGE.fullmatch(text) is not None
    return float(text) if is_set and float(text) > 0 else None


def violations(service: RayService) -> Iterator[Violation]:
    """What of it makes no sense; nothing where traffic does not move step by step."""
    strategy = service.spec.upgrade_strategy
    if strategy is None or not is_incremental(service):
        return
    yield from _annotations(service)
    if not is_autoscaled(service.spec.ray_cluster_config):
        field = "spec.rayClusterConfig.enableInTreeAutoscaling"
        yield has_value(field, False, "set it to true: the clusters grow and shrink with their share of the traffic")
    if strategy.cluster_upgrade_options is None:
        yield is_missing(OPTIONS, "set stepSizePercent, intervalSeconds and gatewayClassName")
    else:
        yield from _options(strategy.cluster_upgrade_options)


def _options(options: ClusterUpgradeOptions) -> Iterator[Violation]:
    percents = {"maxSurgePercent": options.max_surge_percent, "stepSizePercent": options.step_size_percent}
    for name, value in percents.items():
        if not 1 <= value <= WHOLE:
            yield has_value(f"{OPTIONS}.{name}", value, "use 1 to 100, with 0 nothing would ever move")
    if options.step_size_percent > options.max_surge_percent:
        cure = f"use at most maxSurgePercent ({options.max_surge_percent}): traffic follows capacity"
        yield has_value(f"{OPTIONS}.stepSizePercent", options.step_size_percent, cure)
    if options.interval_seconds < 1:
        yield has_value(f"{OPTIONS}.intervalSeconds", options.interval_seconds, "use 1 or more")
    name, route = options.gateway_class_name, options.http_route_name
    if route is not None and not is_dns_1123_subdomain(route):
        yield has_value(f"{OPTIONS}.httpRouteName", route, "use the name of an HTTPRoute in the same namespace")
    elif route is None and not is_dns_1123_subdomain(name):
        cure = "name one that `kubectl get gatewayclasses` shows, or your own HTTPRoute in httpRouteName"
        yield has_value(f"{OPTIONS}.gatewayClassName", name, cure)


def _annotations(service: RayService) -> Iterator[Violation]:
    given = service.metadata.annotations
    percent, switch = given.get(PAUSE_AT, ""), given.get(ROLLBACK_UNHEALTHY, "")
    if percent and not (percent.isascii() and percent.isdecimal() and len(percent) < 3):
        yield has_value(f"metadata.annotations[{PAUSE_AT}]", percent, "use a percentage from 0 to 99", "Metadata")
    limit = given.get(ROLLBACK_ERRORS, "")
    if limit and error_limit(service) is None:
        cure = "use a percentage above 0 and below 100, such as 5 or 0.5"
        yield has_value(f"metadata.annotations[{ROLLBACK_ERRORS}]", limit, cure, "Metadata")
    if switch not in ("", "true", "false"):
        yield has_value(f"metadata.annotations[{ROLLBACK_UNHEALTHY}]", switch, "use true or false", "Metadata")

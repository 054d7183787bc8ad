"""What a RayService says about its incremental upgrades: options of the spec, and annotations of ours. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from raykeeper.api.rayservice import ClusterUpgradeOptions, RayService
from raykeeper.api.syntax import is_dns_1123_subdomain
from raykeeper.operator.rayservice.states import UpgradeType
from raykeeper.operator.rayservice.upgrade.steps import WHOLE, Pace
from raykeeper.operator.shared.features import is_autoscaled
from raykeeper.operator.shared.violations import Violation, has_value, is_missing

HTTP_ROUTE_NAME: Final = "raykeeper.io/http-route-name"
"""Annotation: the user's own HTTPRoute, in which the weights are kept. No Gateway and no HTTPRoute is made then."""
PAUSE_AT: Final = "raykeeper.io/pause-upgrade-at"
"""Annotation: with so many percent of the traffic the new cluster waits until it is approved."""
APPROVED: Final = "raykeeper.io/approve-upgrade"
"""Annotation: the name of the new cluster that may go on. The next upgrade has another, and waits again."""
ROLLBACK_UNHEALTHY: Final = "raykeeper.io/rollback-unhealthy"
"""Annotation: `true` has an upgrade rolled back when Serve calls an application on the new cluster broken."""

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


def rolls_back_unhealthy(service: RayService) -> bool:
    return service.metadata.annotations.get(ROLLBACK_UNHEALTHY) == "true"


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
        yield from _options(service, strategy.cluster_upgrade_options)


def _options(service: RayService, options: ClusterUpgradeOptions) -> Iterator[Violation]:
    percents = {"maxSurgePercent": options.max_surge_percent, "stepSizePercent": options.step_size_percent}
    for name, value in percents.items():
        if not 1 <= value <= WHOLE:
            yield has_value(f"{OPTIONS}.{name}", value, "use 1 to 100, with 0 nothing would ever move")
    if options.step_size_percent > options.max_surge_percent:
        cure = f"use at most maxSurgePercent ({options.max_surge_percent}): traffic follows capacity"
        yield has_value(f"{OPTIONS}.stepSizePercent", options.step_size_percent, cure)
    if options.interval_seconds < 1:
        yield has_value(f"{OPTIONS}.intervalSeconds", options.interval_seconds, "use 1 or more")
    name = options.gateway_class_name
    if not is_dns_1123_subdomain(name) and not service.metadata.annotations.get(HTTP_ROUTE_NAME):
        cure = f"name one that `kubectl get gatewayclasses` shows, or your own HTTPRoute in {HTTP_ROUTE_NAME}"
        yield has_value(f"{OPTIONS}.gatewayClassName", name, cure)


def _annotations(service: RayService) -> Iterator[Violation]:
    given = service.metadata.annotations
    percent, switch, route = given.get(PAUSE_AT, ""), given.get(ROLLBACK_UNHEALTHY, ""), given.get(HTTP_ROUTE_NAME, "")
    if percent and not (percent.isascii() and percent.isdecimal() and len(percent) < 3):
        yield has_value(f"metadata.annotations[{PAUSE_AT}]", percent, "use a percentage from 0 to 99", "Metadata")
    if switch not in ("", "true", "false"):
        yield has_value(f"metadata.annotations[{ROLLBACK_UNHEALTHY}]", switch, "use true or false", "Metadata")
    if route and not is_dns_1123_subdomain(route):
        cure = "use the name of an HTTPRoute in the same namespace"
        yield has_value(f"metadata.annotations[{HTTP_ROUTE_NAME}]", route, cure, "Metadata")

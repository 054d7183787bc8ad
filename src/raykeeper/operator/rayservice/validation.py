"""What must hold for a RayService before anything is made of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from raykeeper.api import labels, names
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayservice import RayService
from raykeeper.api.syntax import is_dns_1035_label, is_dns_1123_label
from raykeeper.kube.resources import GATEWAYS, HTTP_ROUTES
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.raycluster.validation.candidate import Candidate
from raykeeper.operator.raycluster.validation.validate import spec_violations
from raykeeper.operator.rayservice.plan import parse_seconds
from raykeeper.operator.rayservice.serve_config import LONGEST_KEPT, parse_serve_config
from raykeeper.operator.rayservice.services import head_service_name, serve_service_name
from raykeeper.operator.rayservice.states import REPLACE_UNHEALTHY_AFTER, UPGRADE_TYPES, UpgradeType
from raykeeper.operator.rayservice.upgrade.options import is_incremental
from raykeeper.operator.rayservice.upgrade.options import violations as options_violations
from raykeeper.operator.shared.features import is_kubernetes_token_auth
from raykeeper.operator.shared.service_ports import serve_ports
from raykeeper.operator.shared.violations import Violation, has_value, is_missing, is_set

CONFIG: Final = "spec.rayClusterConfig"
MAX_PORT: Final = 65535


def violations(service: RayService, gates: FeatureGates, *, has_gateway_api: bool = False) -> list[Violation]:
    """All that is wrong with a RayService; empty for one that can be worked on."""
    config = service.spec.ray_cluster_config
    cluster = spec_violations(Candidate(config, service.metadata.annotations, gates, CONFIG))
    upgrade = _incremental(service, gates, has_gateway_api)
    return [*(violation for rule in RULES for violation in rule(service)), *upgrade, *cluster]


def _metadata(service: RayService) -> Iterator[Violation]:
    name = service.metadata.name
    if len(name) > names.MAX_RAYSERVICE_NAME_LENGTH:
        cure = f"use at most {names.MAX_RAYSERVICE_NAME_LENGTH} characters, its RayClusters are called after it"
        yield has_value("metadata.name", name, cure, "Metadata")
    if not is_dns_1035_label(name):
        cure = "use lower-case letters, digits and dashes, starting with a letter, as for the name of a service"
        yield has_value("metadata.name", name, cure, "Metadata")
    for annotation in (labels.INITIALIZING_TIMEOUT, REPLACE_UNHEALTHY_AFTER):
        text = service.metadata.annotations.get(annotation, "")
        if text and parse_seconds(text) is None:
            cure = "use a duration such as 30s, 5m or 1m30s, or a whole number of seconds, of at most ten years"
            yield has_value(f"metadata.annotations[{annotation}]", text, cure, "Metadata")


def _serve_config(service: RayService) -> Iterator[Violation]:
    try:
        parse_serve_config(service.spec.serve_config_v2)
    except ValueError as error:
        yield Violation("spec.serveConfigV2", "cannot be used", str(error))


def _serve_port(service: RayService) -> Iterator[Violation]:
    users = ((service.spec.serve_service or {}).get("spec") or {}).get("ports")
    has_container = bool((service.spec.ray_cluster_config.head_group_spec.template.get("spec") or {}).get("containers"))
    if has_container and not users and not serve_ports(RayCluster(service.metadata, service.spec.ray_cluster_config)):
        field = f"{CONFIG}.headGroupSpec.template.spec.containers[0].ports"
        yield Violation(field, "has no port named serve", "add it, requests come in there; or name no ports at all")


def _upgrade(service: RayService) -> Iterator[Violation]:
    strategy = service.spec.upgrade_strategy
    if strategy is None or not strategy.type:
        return
    if strategy.type not in UPGRADE_TYPES:
        yield has_value("spec.upgradeStrategy.type", strategy.type, f"use one of {', '.join(UPGRADE_TYPES)}")


def _incremental(service: RayService, gates: FeatureGates, has_gateway_api: bool) -> Iterator[Violation]:
    if not is_incremental(service):
        return
    field, gate = "spec.upgradeStrategy.type", Gate.INCREMENTAL_UPGRADE
    if not gates.is_on(gate):
        cure = f"the feature gate {gate.value.name} is off; turn it on, or use {UpgradeType.NEW_CLUSTER}"
        yield has_value(field, UpgradeType.INCREMENTAL, cure)
    elif not has_gateway_api:
        cure = (
            f"the operator cannot use {GATEWAYS} and {HTTP_ROUTES} (v1): install the Gateway API's custom resource "
            "definitions, let the operator list and watch both, and restart it"
        )
        yield has_value(field, UpgradeType.INCREMENTAL, cure)
    yield from options_violations(service)


def _kept_config(service: RayService) -> Iterator[Violation]:
    """A cluster that gives its traffic away step by step keeps its config in an annotation."""
    try:
        length = len(parse_serve_config(service.spec.serve_config_v2).packed()) if is_incremental(service) else 0
    except ValueError:
        return
    if length > LONGEST_KEPT:
        cure = f"packed it has {length} characters, {UpgradeType.INCREMENTAL} takes at most {LONGEST_KEPT}"
        yield Violation("spec.serveConfigV2", "is too long", cure)


def _cluster(service: RayService) -> Iterator[Violation]:
    config = service.spec.ray_cluster_config
    delay = service.spec.ray_cluster_deletion_delay_seconds
    if delay is not None and delay < 0:
        yield has_value("spec.rayClusterDeletionDelaySeconds", delay, "use 0 or more")
    if ((config.head_group_spec.head_service or {}).get("metadata") or {}).get("name"):
        field = f"{CONFIG}.headGroupSpec.headService.metadata.name"
        yield is_set(field, "remove it, two clusters are there during an upgrade, each with a head service of its own")
    if config.upgrade_strategy and config.upgrade_strategy.type:
        yield is_set(f"{CONFIG}.upgradeStrategy.type", "remove it, spec.upgradeStrategy decides about upgrades")
    if is_kubernetes_token_auth(config):
        yield is_set(
            f"{CONFIG}.authOptions.enableK8sTokenAuth", "the operator has no token that such a cluster would take"
        )


def _serve_service(service: RayService) -> Iterator[Violation]:
    field, name = "spec.serveService", serve_service_name(service)
    if not is_dns_1123_label(name):
        cure = "use at most 63 lower-case letters, digits and dashes"
        yield has_value(f"{field}.metadata.name", name, cure)
    if name == head_service_name(service):
        yield has_value(f"{field}.metadata.name", name, "use another one, the service of the head is called so")
    for index, port in enumerate(((service.spec.serve_service or {}).get("spec") or {}).get("ports") or ()):
        number = port.get("port") if isinstance(port, dict) else None
        if not isinstance(number, int):
            yield is_missing(f"{field}.spec.ports[{index}].port", "the number of the port")
        elif not 1 <= number <= MAX_PORT:
            yield has_value(f"{field}.spec.ports[{index}].port", number, f"use 1 to {MAX_PORT}")


Rule = Callable[[RayService], Iterator[Violation]]
RULES: Final[tuple[Rule, ...]] = (
    _metadata,
    _serve_config,
    _kept_config,
    _serve_service,
    _serve_port,
    _upgrade,
    _cluster,
)

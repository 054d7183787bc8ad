"""All rules for a RayCluster, in one table, and what they say about one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from raykeeper.api import labels, names
from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.raycluster import SUSPENDED, SUSPENDING, RayCluster
from raykeeper.api.syntax import is_dns_1035_label
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.gates import FeatureGates
from raykeeper.operator.raycluster.suspension import is_contradictory
from raykeeper.operator.raycluster.validation import autoscaling, fault_tolerance, groups, history, security
from raykeeper.operator.raycluster.validation.candidate import Candidate, Rule
from raykeeper.operator.shared.features import chosen_autoscaler, is_autoscaled
from raykeeper.operator.shared.history import ANNOTATIONS
from raykeeper.operator.shared.violations import (
    MOST_TOLD,
    Violation,
    has_value,
    is_missing,
    is_set,
)

RULES: Final[tuple[Rule, ...]] = (
    groups.worker_groups_are_few,
    groups.worker_pods_can_be_counted,
    groups.amounts_can_be_read,
    groups.every_group_has_a_container,
    groups.resources_are_given_once,
    groups.labels_are_given_by_their_field,
    groups.worker_groups_differ_in_name,
    groups.replicas_are_in_order,
    groups.suspended_groups_are_possible,
    autoscaling.idle_timeouts_of_groups_need_v2,
    autoscaling.priorities_of_groups_need_v2,
    autoscaling.the_autoscaler_is_chosen_once,
    autoscaling.autoscaler_v2_needs_pods_that_stay_dead,
    autoscaling.autoscaler_options_are_possible,
    fault_tolerance.fault_tolerance_is_asked_for_once,
    fault_tolerance.redis_needs_fault_tolerance,
    fault_tolerance.redis_is_described_by_the_options,
    fault_tolerance.redis_users_are_named_by_the_options,
    fault_tolerance.only_rocksdb_has_a_volume,
    fault_tolerance.rocksdb_is_described_by_the_options,
    history.the_collector_is_complete,
    security.token_auth_needs_a_ray_that_has_it,
    security.kubernetes_tokens_replace_ours,
    security.network_policies_are_possible,
    security.tls_is_set_up_by_the_operator,
)
"""Everything a spec must keep, whichever kind of object carries it."""

MAKERS_WITH_UPGRADES: Final = ("RayJob", "RayService")
"""Kinds that replace their RayClusters themselves."""


def violations(cluster: RayCluster, gates: FeatureGates, api_server: ApiServerFacts) -> list[Violation]:
    """All that is wrong with a RayCluster; empty for one that can be reconciled.

    A cluster that is being deleted must not be asked: it has to be cleaned up whatever its spec says.
    """
    candidate = Candidate(cluster.spec, cluster.metadata.annotations, gates)
    return [
        *_metadata(cluster),
        *spec_violations(candidate),
        *_certificates(cluster, api_server),
        *_upgrade_strategy(cluster),
    ]


def spec_violations(candidate: Candidate) -> list[Violation]:
    """What is wrong with a spec, also with the one inside a RayJob or RayService; one more than can be told at most."""
    if too_many := list(groups.worker_groups_are_few(candidate)):
        return too_many  # all other rules look at each of them
    return list(islice((violation for rule in RULES for violation in rule(candidate)), MOST_TOLD + 1))


def warnings(cluster: RayCluster) -> list[Violation]:
    """What the user should know although the cluster can be reconciled."""
    return [
        *_restarts_under_autoscaler_v1(cluster),
        *_auth_without_mode(cluster),
        *_contradictory_status(cluster),
        *_unclear_history(cluster),
    ]


def _metadata(cluster: RayCluster) -> Iterator[Violation]:
    name = cluster.metadata.name
    if len(name) > names.MAX_RAYCLUSTER_NAME_LENGTH:
        cure = f"use at most {names.MAX_RAYCLUSTER_NAME_LENGTH} characters, names of services are made from it"
        yield has_value("metadata.name", name, cure, "Metadata")
    if not is_dns_1035_label(name):
        cure = "use lower-case letters, digits and dashes, starting with a letter, as for the name of a service"
        yield has_value("metadata.name", name, cure, "Metadata")


def _certificates(cluster: RayCluster, api_server: ApiServerFacts) -> Iterator[Violation]:
    options = cluster.spec.tls_options
    if options and options.enabled and not api_server.has_cert_manager:
        cure = "it needs cert-manager, which was not there when the operator started: install it, restart the operator"
        yield has_value("spec.tlsOptions.enabled", True, cure)


def _upgrade_strategy(cluster: RayCluster) -> Iterator[Violation]:
    strategy, maker = cluster.spec.upgrade_strategy, cluster.metadata.labels.get(labels.ORIGINATED_FROM_CRD)
    if strategy and strategy.type and maker in MAKERS_WITH_UPGRADES:
        yield is_set(
            "spec.upgradeStrategy.type", f"remove it, the {maker} that made this cluster decides about upgrades"
        )


def _restarts_under_autoscaler_v1(cluster: RayCluster) -> Iterator[Violation]:
    if not is_autoscaled(cluster.spec) or chosen_autoscaler(cluster.spec) != "v1":
        return
    for index, group in enumerate(cluster.spec.worker_group_specs):
        policy = pod_spec(group.template).get("restartPolicy")
        if policy not in autoscaling.NO_RESTART:
            field = f"spec.workerGroupSpecs[{index}].template.spec.restartPolicy"
            yield has_value(field, policy, "the autoscaler v1 may not notice that a worker restarted; use Never")


def _contradictory_status(cluster: RayCluster) -> Iterator[Violation]:
    if is_contradictory(cluster.status.conditions):
        found = f"says both {SUSPENDING} and {SUSPENDED}"
        yield Violation("status.conditions", found, "it is written anew, by what the spec says", "Status")


def _unclear_history(cluster: RayCluster) -> Iterator[Violation]:
    for name in ANNOTATIONS:
        said = cluster.metadata.annotations.get(name, "false")
        if said.lower() not in ("true", "false"):
            yield has_value(f"metadata.annotations[{name}]", said, 'it counts as "false"; write "true"', "Metadata")


def _auth_without_mode(cluster: RayCluster) -> Iterator[Violation]:
    options = cluster.spec.auth_options
    if options and options.mode is None:
        yield is_missing("spec.authOptions.mode", "Ray asks nobody for a token; write mode: token, or mode: disabled")

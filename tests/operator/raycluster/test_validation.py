"""Every rule of a RayCluster accepts what keeps it and refuses what breaks it, with the field's name and a cure."""

from __future__ import annotations

import re
import time

import msgspec
import pytest

from bed.waiting import BUSY_FACTOR
from rayclusters.manifests import a_cluster
from rayclusters.validation_cases import (
    CASES,
    DEFAULT_GATES,
    METADATA,
    MTLS,
    WITH_CERT_MANAGER,
    Case,
    with_auth,
    with_redis,
    with_tls,
)
from raykeeper.api.conditions import Condition
from raykeeper.api.quantity import parse_quantity
from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.raycluster.resources import desired_totals
from raykeeper.operator.raycluster.validation.candidate import Candidate
from raykeeper.operator.raycluster.validation.groups import amounts_can_be_read
from raykeeper.operator.raycluster.validation.validate import RULES, spec_violations, violations, warnings
from raykeeper.operator.shared.violations import invalid_spec

EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)


@EVERY_CASE
def test_what_keeps_the_rule_is_accepted(case: Case) -> None:
    assert violations(case.accepted.build(), case.gates, WITH_CERT_MANAGER) == []


@EVERY_CASE
def test_what_breaks_the_rule_is_refused_by_that_rule_alone(case: Case) -> None:
    assert {violation.field for violation in violations(case.refused.build(), case.gates, WITH_CERT_MANAGER)} == {
        case.field
    }


def test_every_numbered_rule_has_a_case() -> None:
    numbers = {match[1] for case in CASES if (match := re.match(r"(\d+):", case.sentence))}
    assert numbers == {str(number) for number in range(1, 19)}


def test_every_rule_in_the_table_is_broken_by_a_case() -> None:
    broken = set()
    for case in CASES:
        cluster = case.refused.build()
        candidate = Candidate(cluster.spec, cluster.metadata.annotations, case.gates)
        broken |= {rule for rule in RULES if any(rule(candidate))}
    assert broken == set(RULES) - {amounts_can_be_read}, "which no object of v1 can break"


@pytest.mark.parametrize("case", METADATA, ids=lambda case: case.sentence)
def test_a_wrong_name_has_a_reason_of_its_own(case: Case) -> None:
    broken = violations(case.refused.build(), case.gates, WITH_CERT_MANAGER)
    assert {violation.reason("RayCluster") for violation in broken} == {"InvalidRayClusterMetadata"}


def test_all_violations_are_told_at_once() -> None:
    cluster = a_cluster().with_workers(minReplicas=-1, labels={"zone": "a b"}).with_head_pod(containers=[]).build()
    error = invalid_spec("RayCluster", violations(cluster, DEFAULT_GATES, WITH_CERT_MANAGER))
    assert error.reason == "InvalidRayClusterSpec"
    assert error.message == (
        "spec.headGroupSpec.template.spec.containers is empty: name the container that runs Ray; "
        'spec.workerGroupSpecs[0].labels[zone] is "a b": use at most 63 letters, digits, dashes, underscores and dots, '
        "alphanumeric at both ends; "
        "spec.workerGroupSpecs[0].minReplicas is -1: use 0 or more"
    )


def test_amounts_that_are_none_are_told_as_any_other_slip() -> None:
    """The schema of v1alpha1 lets them pass."""
    resources = {"limits": {"cpu": "abc", "memory": "1Gi"}, "requests": {"nvidia.com/gpu": None}}
    cluster = a_cluster().with_head_container(resources=resources).build()
    path = "spec.headGroupSpec.template.spec.containers[0].resources"
    assert [str(violation) for violation in violations(cluster, DEFAULT_GATES, WITH_CERT_MANAGER)] == [
        f'{path}.limits[cpu] is "abc": use a quantity such as 500m, 2 or 4Gi',
        f"{path}.requests[nvidia.com/gpu] is null: use a quantity such as 500m, 2 or 4Gi",
    ]
    assert desired_totals(cluster).memory == parse_quantity("1Gi"), "and nothing else breaks by them"


def test_what_is_told_has_a_length_whatever_the_user_wrote() -> None:
    long = "x" * 1_000_000
    cluster = a_cluster().with_workers(labels={long: long})
    first = cluster.manifest["spec"]["workerGroupSpecs"][0]
    others = [{"groupName": str(n), "minReplicas": -1, "template": first["template"]} for n in range(999)]
    cluster = cluster.with_spec(workerGroupSpecs=[first, *others])
    started = time.perf_counter()
    error = invalid_spec("RayCluster", violations(cluster.build(), DEFAULT_GATES, WITH_CERT_MANAGER))
    assert time.perf_counter() - started < 2 * BUSY_FACTOR
    assert len(error.message) < 10_000
    assert error.message.endswith("; and more of the kind")


def test_a_secret_in_the_wrong_place_is_not_told() -> None:
    cluster = with_redis().with_head_env("REDIS_PASSWORD", "hunter2").build()
    assert [str(violation) for violation in violations(cluster, DEFAULT_GATES, WITH_CERT_MANAGER)] == [
        "spec.headGroupSpec.template.spec.containers[0].env[REDIS_PASSWORD] is set: "
        "use spec.gcsFaultToleranceOptions.redisPassword instead"
    ]


def test_a_value_from_elsewhere_counts_as_set() -> None:
    entry = {"name": "REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}
    assert violations(with_redis().with_head_container(env=[entry]).build(), DEFAULT_GATES, WITH_CERT_MANAGER)


def test_a_template_without_a_spec_is_told_and_breaks_nothing() -> None:
    found = violations(a_cluster().with_head(template={}).build(), DEFAULT_GATES, WITH_CERT_MANAGER)
    assert [violation.field for violation in found] == ["spec.headGroupSpec.template.spec.containers"]


def test_a_spec_inside_another_object_is_named_by_its_path_there() -> None:
    cluster = a_cluster().with_head_pod(containers=[]).build()
    found = spec_violations(Candidate(cluster.spec, {}, DEFAULT_GATES, path="spec.rayClusterSpec"))
    assert [violation.field for violation in found] == ["spec.rayClusterSpec.headGroupSpec.template.spec.containers"]


def test_a_gate_that_is_off_is_named_with_the_flag_that_turns_it_on() -> None:
    cluster = a_cluster().with_spec(tlsOptions={"enabled": True}).build()
    assert [str(violation) for violation in violations(cluster, DEFAULT_GATES, WITH_CERT_MANAGER)] == [
        "spec.tlsOptions is set: remove it, or start the operator with --feature-gates=RayClusterMTLS=true"
    ]


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_restarting_workers_under_autoscaler_v1_is_a_warning_only(policy: str) -> None:
    cluster = a_cluster().autoscaled(version="v1").with_workers(pod={"restartPolicy": policy}).build()
    assert violations(cluster, DEFAULT_GATES, WITH_CERT_MANAGER) == []
    assert [warning.field for warning in warnings(cluster)] == ["spec.workerGroupSpecs[0].template.spec.restartPolicy"]


def test_authentication_without_a_mode_is_a_warning_only() -> None:
    cluster = a_cluster().with_spec(authOptions={}).build()
    assert violations(cluster, DEFAULT_GATES, WITH_CERT_MANAGER) == []
    assert [warning.field for warning in warnings(cluster)] == ["spec.authOptions.mode"]


def test_a_sound_cluster_gives_no_warning() -> None:
    workers = with_auth().with_workers(pod={"restartPolicy": "Always"})
    assert warnings(workers.build()) == []
    assert warnings(workers.autoscaled().build()) == []
    assert warnings(with_auth().autoscaled(version="v1").with_workers(pod={"restartPolicy": "Never"}).build()) == []


def test_encryption_needs_cert_manager() -> None:
    (violation,) = violations(with_tls().build(), MTLS, ApiServerFacts((1, 36), is_openshift=False))
    assert str(violation).startswith("spec.tlsOptions.enabled is true: it needs cert-manager")


def test_a_status_that_contradicts_itself_is_told() -> None:
    conditions = tuple(
        Condition(name, "True", name, "", "") for name in ("RayClusterSuspending", "RayClusterSuspended")
    )
    cluster = a_cluster().build()
    assert warnings(cluster) == []
    (warning,) = warnings(msgspec.structs.replace(cluster, status=RayClusterStatus(conditions=conditions)))
    assert warning.reason("RayCluster") == "InvalidRayClusterStatus"

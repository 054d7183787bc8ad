"""Feature gates: KubeRay's names and defaults; what is unknown or not there yet is refused by name."""

from __future__ import annotations

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.operator.gates import Gate, Stage, parse_gates

GATES = {
    "RayClusterStatusConditions": (Stage.BETA, True),
    "RayJobDeletionPolicy": (Stage.BETA, True),
    "RayMultiHostIndexing": (Stage.BETA, True),
    "RayServiceIncrementalUpgrade": (Stage.BETA, True),
    "RayCronJob": (Stage.ALPHA, True),  # off in KubeRay
    "SidecarSubmitterRestart": (Stage.ALPHA, False),
    "RayClusterNetworkPolicy": (Stage.ALPHA, False),
    "GCSFaultToleranceEmbeddedStorage": (Stage.ALPHA, False),
    "RayClusterMTLS": (Stage.ALPHA, False),
    "RayClusterHistoryServer": (Stage.ALPHA, False),
    "KubernetesWAS": (Stage.ALPHA, False),
}
DEFAULT_OF_THE_CHART = (
    "RayClusterStatusConditions=true,RayJobDeletionPolicy=true,RayMultiHostIndexing=true,"
    "RayServiceIncrementalUpgrade=true,RayCronJob=true,RayClusterMTLS=false,RayClusterNetworkPolicy=false,"
    "RayClusterHistoryServer=false"
)


def test_gates_stages_and_defaults_are_those_of_kuberay_but_for_raycronjobs() -> None:
    assert {gate.value.name: (gate.value.stage, gate.value.is_on) for gate in Gate} == GATES


@pytest.mark.parametrize("text", ["", DEFAULT_OF_THE_CHART, " RayCronJob = true , "])
def test_saying_the_defaults_changes_nothing(text: str) -> None:
    assert {gate.value.name for gate in Gate if parse_gates(text).is_on(gate)} == {
        name for name, (_, is_on) in GATES.items() if is_on
    }


def test_a_gate_can_be_switched_on_and_off() -> None:
    gates = parse_gates("RayClusterHistoryServer=true,RayMultiHostIndexing=False")
    assert gates.is_on(Gate.HISTORY_SERVER)
    assert not gates.is_on(Gate.MULTI_HOST_INDEXING)
    assert gates.is_on(Gate.STATUS_CONDITIONS)


def test_a_whole_stage_can_be_switched_and_single_gates_beat_it() -> None:
    gates = parse_gates("RayJobDeletionPolicy=true,AllBeta=false")
    assert [gate for gate in Gate if gates.is_on(gate)] == [Gate.RAYJOB_DELETION_POLICY, Gate.RAYCRONJOB]


def test_of_two_words_about_one_gate_the_last_counts() -> None:
    assert not parse_gates("RayMultiHostIndexing=true,RayMultiHostIndexing=false").is_on(Gate.MULTI_HOST_INDEXING)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("RayCluster=true", "--feature-gates='RayCluster' cannot be used: there is no such gate; there are Ray"),
        ("raycronjob=false", "--feature-gates='raycronjob' cannot be used: there is no such gate"),
        ("RayCronJob", "--feature-gates='RayCronJob' cannot be used: a gate is written Name=true or Name=false"),
        ("RayCronJob=on", "--feature-gates RayCronJob='on' cannot be used: use true or false"),
        (
            "AllAlpha=true",
            "--feature-gates='RayClusterNetworkPolicy=true' cannot be used: this version makes no",
        ),
    ],
)
def test_a_wrong_gate_is_refused_by_name(text: str, culprit: str) -> None:
    with pytest.raises(Misconfigured) as refusal:
        parse_gates(text)
    assert str(refusal.value).startswith(culprit)


@pytest.mark.parametrize("gate", [gate for gate in Gate if gate.value.missing], ids=lambda gate: gate.value.name)
def test_a_gate_whose_feature_is_not_there_cannot_be_turned_on(gate: Gate) -> None:
    with pytest.raises(Misconfigured, match=f"'{gate.value.name}=true' cannot be used: this version "):
        parse_gates(f"{gate.value.name}=true")
    assert not parse_gates(f"{gate.value.name}=false").is_on(gate)


def test_a_gate_whose_kubernetes_is_too_old_stops_the_operator_by_name() -> None:
    gates = parse_gates("SidecarSubmitterRestart=true")
    gates.check((1, 35))
    with pytest.raises(
        Misconfigured, match=r"'SidecarSubmitterRestart=true' cannot be used: it needs Kubernetes 1\.35"
    ):
        gates.check((1, 34))
    parse_gates("").check((1, 20))

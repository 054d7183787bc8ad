"""Every rule for a RayJob, and what it says about the field that breaks it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from raykeeper.api.meta import JSON
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.rayjob.conditions import with_conditions
from raykeeper.operator.rayjob.validation import violations
from raykeeper.operator.shared.troubles import Trouble, pods_trouble
from support.rayjob_facts import CLUSTER_SPEC, NOW, TEMPLATE, a_job, ago

SELECTED: JSON = {"rayClusterSpec": None, "clusterSelector": {"ray.io/cluster": "shared"}}
ALWAYS = {"template": {"spec": TEMPLATE["spec"] | {"restartPolicy": "Always"}}}


def rules(*rows: tuple[str, str, int]) -> JSON:
    made = [{"policy": policy, "condition": {"jobStatus": status, "ttlSeconds": ttl}} for policy, status, ttl in rows]
    return {"deletionStrategy": {"deletionRules": made}}


def pair(success: str, failure: str) -> JSON:
    return {"deletionStrategy": {"onSuccess": {"policy": success}, "onFailure": {"policy": failure}}}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        SELECTED,
        {"suspend": True, "shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 5},
        {"submissionMode": "InteractiveMode", "entrypoint": ""},
        {
            "entrypoint": "",
            "submitterPodTemplate": {"spec": {"containers": [{"name": "s", "command": ["/submitter"]}]}},
        },
        {"submissionMode": "SidecarMode", "submitterConfig": {"resources": {}}},
        {"submissionMode": "HTTPMode", "backoffLimit": 3, "retryRayClusterStrategy": "ReuseRayCluster"},
        rules(("DeleteWorkers", "FAILED", 1), ("DeleteCluster", "FAILED", 1), ("DeleteSelf", "FAILED", 2)),
        pair("DeleteCluster", "DeleteNone"),
        {"runtimeEnvYAML": "pip: [x]", "entrypointResources": '{"a": 1}'},
    ],
)
def test_what_makes_sense_is_accepted(spec: JSON) -> None:
    assert violations(a_job(**spec), FeatureGates()) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"suspend": True}, "spec.suspend"),
        ({**SELECTED, "suspend": True, "shutdownAfterJobFinishes": True}, "spec.suspend"),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished"),
        ({"ttlSecondsAfterFinished": 1}, "spec.ttlSecondsAfterFinished"),
        ({"rayClusterSpec": None}, "spec.rayClusterSpec"),
        ({"rayClusterSpec": None, "clusterSelector": {"a": "b"}}, "spec.clusterSelector[ray.io/cluster]"),
        ({**SELECTED, "backoffLimit": 1}, "spec.backoffLimit"),
        ({"submissionMode": "HttpMode"}, "spec.submissionMode"),
        ({"entrypoint": " "}, "spec.entrypoint"),
        ({"submissionMode": "InteractiveMode", "backoffLimit": 1}, "spec.backoffLimit"),
        ({**SELECTED, "submissionMode": "SidecarMode"}, "spec.clusterSelector"),
        ({"submissionMode": "SidecarMode", "submitterPodTemplate": TEMPLATE}, "spec.submitterPodTemplate"),
        (
            {"submissionMode": "SidecarMode", "submitterConfig": {"backoffLimit": 1}},
            "spec.submitterConfig.backoffLimit",
        ),
        (
            {"submissionMode": "SidecarMode", "retryRayClusterStrategy": "ReuseRayCluster"},
            "spec.retryRayClusterStrategy",
        ),
        (
            {"submissionMode": "SidecarMode", "rayClusterSpec": CLUSTER_SPEC | {"headGroupSpec": ALWAYS}},
            "spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy",
        ),
        ({"entrypoint": "", "submitterPodTemplate": TEMPLATE}, "spec.entrypoint"),
        ({"runtimeEnvYAML": "a: ["}, "spec.runtimeEnvYAML"),
        ({"entrypointResources": "many"}, "spec.entrypointResources"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"backoffLimit": -1}, "spec.backoffLimit"),
        (
            {"rayClusterSpec": CLUSTER_SPEC | {"upgradeStrategy": {"type": "Recreate"}}},
            "spec.rayClusterSpec.upgradeStrategy.type",
        ),
        (
            {"rayClusterSpec": CLUSTER_SPEC | {"headGroupSpec": {"template": {}}}},
            "spec.rayClusterSpec.headGroupSpec.template.spec.containers",
        ),
        (
            {**rules(("DeleteSelf", "FAILED", 0)), "shutdownAfterJobFinishes": True},
            "spec.deletionStrategy.deletionRules",
        ),
        (rules(("DeleteCluster", "FAILED", 5), ("DeleteSelf", "FAILED", 1)), "spec.deletionStrategy.deletionRules"),
        (
            rules(("DeleteSelf", "FAILED", 5), ("DeleteSelf", "FAILED", 9)),
            "spec.deletionStrategy.deletionRules[1].policy",
        ),
        ({**SELECTED, **rules(("DeleteCluster", "FAILED", 5))}, "spec.deletionStrategy.deletionRules[0].policy"),
        (
            {"rayClusterSpec": CLUSTER_SPEC | {"enableInTreeAutoscaling": True}, **pair("DeleteWorkers", "DeleteNone")},
            "spec.deletionStrategy.onSuccess.policy",
        ),
        (
            {**pair("DeleteNone", "DeleteSelf"), "shutdownAfterJobFinishes": True},
            "spec.deletionStrategy.onSuccess.policy",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(spec: JSON, field: str) -> None:
    assert field in [violation.field for violation in violations(a_job(**spec), FeatureGates())]


@pytest.mark.parametrize("name", ["1abc", "a.b", "a" * 48, "Grün"])
def test_a_name_that_no_cluster_could_have_is_refused(name: str) -> None:
    job = a_job()
    job.metadata.name = name
    assert {violation.reason("RayJob") for violation in violations(job, FeatureGates())} == {"InvalidRayJobMetadata"}


def test_deletion_rules_need_their_gate() -> None:
    gates = FeatureGates({Gate.RAYJOB_DELETION_POLICY: False})
    assert violations(a_job(**pair("DeleteSelf", "DeleteSelf")), gates)


LONG = "x" * 200_000


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"entrypoint": LONG, "submissionMode": "HTTPMode"}, "spec.entrypoint"),
        ({"entrypoint": LONG, "submissionMode": "K8sJobMode"}, "spec.entrypoint"),
        ({"entrypoint": "é" * 70_000, "submissionMode": "HTTPMode"}, "spec.entrypoint"),
        ({"entrypoint": "'" * 40_000, "submissionMode": "SidecarMode"}, "spec.entrypoint"),
        ({"runtimeEnvYAML": f"env_vars: {{A: {LONG}}}", "submissionMode": "K8sJobMode"}, "spec.entrypoint"),
        ({"runtimeEnvYAML": f"env_vars: {{A: {LONG}}}", "submissionMode": "HTTPMode"}, ""),
        ({"entrypoint": "x" * 100_000, "submissionMode": "K8sJobMode"}, ""),
        ({"entrypoint": LONG, "submissionMode": "InteractiveMode"}, ""),
    ],
)
def test_what_no_program_can_be_started_with_is_refused(spec: JSON, field: str) -> None:
    assert [violation.field for violation in violations(a_job(**spec), FeatureGates())] == ([field] if field else [])


def test_submitters_beside_a_head_have_a_limit_of_restarts_with_their_gate() -> None:
    gates = FeatureGates({Gate.SIDECAR_SUBMITTER_RESTART: True})
    assert not violations(a_job(submissionMode="SidecarMode", submitterConfig={"backoffLimit": 1}), gates)


def test_only_interactive_jobs_wait() -> None:
    assert [str(violation.part) for violation in violations(a_job("Waiting"), FeatureGates())] == ["Status"]


def conditions(state: str, trouble: Trouble | None = None, invalid: str = "", **status: Any) -> dict[str, str]:
    job = a_job(state, status)
    said = with_conditions(job, job.status, trouble, invalid, NOW)
    assert said.observed_generation == 3
    assert with_conditions(msgspec.structs.replace(job, status=said), said, trouble, invalid, NOW) == said
    return {one.type: f"{one.status} {one.reason}: {one.message}" for one in said.conditions}


def test_conditions_say_what_a_job_waits_for() -> None:
    trouble = Trouble("ErrImagePull", "pod p: container ray: no such image")
    said = conditions("Initializing", trouble)
    assert said["Reconciling"] == "True ErrImagePull: pod p: container ray: no such image"
    assert said["Ready"].startswith("False")
    assert said["Stalled"].startswith("False")
    assert conditions("Initializing", Trouble("InvalidImageName", "no", is_hopeless=True))["Stalled"].startswith("True")


@pytest.mark.parametrize(
    ("state", "three"),
    [("Complete", "TFF"), ("Failed", "FFT"), ("ValidationFailed", "FFT"), ("Suspended", "FFF"), ("Running", "TFF"),
     ("Retrying", "FTF"), ("", "FTF")],
)  # fmt: skip
def test_kstatus_finds_its_three_conditions(state: str, three: str) -> None:
    said = conditions(state)
    assert "".join(said[kind][0] for kind in ("Ready", "Reconciling", "Stalled")) == three


def test_a_traceback_stands_only_where_it_explains_something() -> None:
    said = conditions("Failed", reason="AppFailed", message="Traceback: ValueError")
    assert said == {
        "Ready": "False AppFailed: Traceback: ValueError",
        "Reconciling": "False AppFailed: ",
        "Stalled": "True AppFailed: Traceback: ValueError",
    }


def test_a_job_that_was_stopped_is_not_called_ready() -> None:
    said = conditions("Complete", jobStatus="STOPPED", message="by its user")
    assert (said["Ready"], said["Stalled"][0]) == ("False Stopped: Ray says STOPPED: by its user", "T")


def test_a_job_that_goes_on_though_its_spec_is_wrong_says_so() -> None:
    assert conditions("Running", invalid="spec.suspend is true: no")["RayJobInvalid"].startswith("True InvalidSpec")


def test_conditions_of_others_are_kept() -> None:
    foreign = {"type": "example.com/Idle", "status": "True", "reason": "X", "message": "", "lastTransitionTime": ago(5)}
    assert "example.com/Idle" in conditions("Running", conditions=[foreign])


def a_pod(reason: str, message: str) -> JSON:
    container = {"name": "ray", "state": {"waiting": {"reason": reason, "message": message}}}
    return {"metadata": {"name": "p", "uid": "u"}, "status": {"containerStatuses": [container]}}


@pytest.mark.parametrize(
    ("pod", "reason", "is_hopeless"),
    [
        (a_pod("InvalidImageName", "cannot parse"), "InvalidImageName", True),
        (a_pod("ErrImageNeverPull", "not present"), "ErrImageNeverPull", True),
        (a_pod("CreateContainerConfigError", "secret not found"), "CreateContainerConfigError", True),
        (a_pod("ErrImagePull", "failed to resolve: 404 not found"), "ErrImagePull", False),
        (a_pod("CrashLoopBackOff", "back-off"), "CrashLoopBackOff", False),
    ],
)
def test_why_a_pod_does_not_start_is_told(pod: JSON, reason: str, is_hopeless: bool) -> None:
    trouble = pods_trouble([pod])
    assert trouble is not None
    assert (trouble.reason, trouble.is_hopeless) == (reason, is_hopeless)
    assert trouble.message.startswith("pod p: container ray: ")


def test_an_image_that_was_refused_for_long_enough_is_not_waited_for() -> None:
    trouble = pods_trouble([a_pod("ImagePullBackOff", "404 Not Found")], refused={("u", "ray")})
    assert trouble is not None
    assert (trouble.reason, trouble.is_hopeless) == ("ImagePullBackOff", True)


def ended(code: int, reason: str = "Error") -> JSON:
    return {"terminated": {"exitCode": code, "reason": reason}}


LOOPS: JSON = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}


@pytest.mark.parametrize(
    ("status", "reason", "words", "is_hopeless"),
    [
        ({"phase": "Failed", "initContainerStatuses": [{"name": "mine", "state": ended(42)}]}, "Error", "42", True),
        ({"phase": "Pending", "initContainerStatuses": [{"name": "mine", "state": ended(42)}]}, "Error", "42", False),
        ({"initContainerStatuses": [{"name": "mine", "state": LOOPS, "lastState": ended(42)}]}, "Crash", "42", False),
        (
            {"phase": "Failed", "initContainerStatuses": [{"name": "wait-gcs-ready", "state": ended(1)}]},
            "Er",
            "1",
            False,
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"name": "ray", "state": ended(137, "OOMKilled")}]},
            "OOM",
            "137",
            False,
        ),
        ({"phase": "Failed", "containerStatuses": [{"name": "ray", "state": ended(127)}]}, "Error", "127", True),
        ({"containerStatuses": [{"name": "ray", "state": LOOPS, "lastState": ended(127)}]}, "Crash", "127", True),
        (
            {"containerStatuses": [{"name": "ray", "state": LOOPS, "lastState": ended(128, "StartError")}]},
            "Crash",
            "Start",
            True,
        ),
    ],
)
def test_how_a_container_ended_is_told_and_whether_it_is_worth_another_try(
    status: JSON, reason: str, words: str, is_hopeless: bool
) -> None:
    trouble = pods_trouble([{"metadata": {"name": "p"}, "status": status}])
    assert trouble is not None
    assert (trouble.reason.startswith(reason), words in trouble.message) == (True, True)
    assert trouble.is_hopeless == is_hopeless


def test_a_container_that_did_its_work_is_no_trouble() -> None:
    status = {"initContainerStatuses": [{"name": "mine", "state": ended(0, "Completed")}]}
    assert pods_trouble([{"metadata": {"name": "p"}, "status": status}]) is None


def test_a_pod_without_a_node_says_what_the_scheduler_said() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: no GPU"}
    trouble = pods_trouble([{"metadata": {"name": "p"}, "status": {"conditions": [condition]}}])
    assert trouble == Trouble("Unschedulable", "pod p: 0/3 nodes: no GPU")


def test_a_pod_that_just_starts_is_no_trouble() -> None:
    assert pods_trouble([a_pod("ContainerCreating", "")]) is None

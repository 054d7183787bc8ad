"""What the user wrote is what Ray gets, whatever characters are in it; and how submitters look and end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bed.waiting import PATIENCE_SECONDS
from raykeeper.api.meta import JSON, ObjectMeta
from raykeeper.api.raycluster import RayCluster, RayClusterSpec
from raykeeper.api.rayjob import RayJobSpec
from raykeeper.operator.rayjob.cluster import desired_cluster, most_restarts
from raykeeper.operator.rayjob.submitter.command import (
    parse_resources,
    parse_runtime_env,
    submission,
    submitter_arguments,
    submitter_script,
)
from raykeeper.operator.rayjob.submitter.container import DEFAULT_RESOURCES, LIGHT_RESOURCES, SubmitterDefaults
from raykeeper.operator.rayjob.submitter.job import desired_submitter
from raykeeper.operator.rayjob.submitter.outcome import job_outcome, sidecar_outcome
from raykeeper.operator.shared.troubles import Trouble
from raykeeper.ray.jobs import JobSubmission
from raykeeper.submitter.settings import read_settings
from support.rayjob_facts import CLUSTER_SPEC, NOW, TEMPLATE, a_job

ADDRESS = "http://head.ns.svc:8265"
CLUSTER = RayCluster(ObjectMeta(name="counter-fghij", namespace="ns"), msgspec.convert(CLUSTER_SPEC, RayClusterSpec))
FAKE_PYTHON = """#!/bin/bash
# Called as python3 -c <program> <arguments>: the first call is the look at Ray's health.
if [ "$#" -eq 3 ]; then exit 0; fi
printf '%s\\0' "${@:3}" > "$RECORD"
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that a python3 on the PATH writes its arguments to."""
    folder = tmp_path_factory.mktemp("bin")
    python = folder / "python3"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    return folder / "arguments"


def run_in_bash(script: str, record: Path) -> list[str]:
    env = {"PATH": f"{record.parent}:{os.environ['PATH']}", "RECORD": str(record)}
    subprocess.run(["/bin/bash", "-ce", "--", script], check=True, env=env, timeout=30)
    return record.read_bytes().decode().split("\0")[:-1]


ANY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
EVIL = [
    "python -c \"print('a b', $HOME, `id`, \\\\ , !!)\"",
    "echo 'single' && ls; rm -rf \"$HOME\" | tee > x < y & # comment",
    "$(touch /tmp/pwned)",
    "日本語 ünïcode \n newline \t tab",
    "-- --submission-id=other",
    "'",
    '"',
    "\\",
]


@pytest.mark.parametrize("entrypoint", EVIL)
def test_evil_entrypoints_reach_ray_as_they_are(entrypoint: str, record: Path) -> None:
    job = a_job("Running", entrypoint=entrypoint, metadata={"note": entrypoint})
    address, body = run_in_bash(submitter_script(job, ADDRESS), record)
    sent = json.loads(body)
    assert address == ADDRESS
    assert (sent["entrypoint"], sent["metadata"]) == (entrypoint.strip(), {"note": entrypoint})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entrypoint=ANY_TEXT, key=ANY_TEXT, value=ANY_TEXT, env=ANY_TEXT)
def test_any_text_survives_real_bash(record: Path, entrypoint: str, key: str, value: str, env: str) -> None:
    runtime_env = yaml.safe_dump({"env_vars": {"A": env}})  # escaped: YAML takes U+0085 for the end of a line
    job = a_job("Running", entrypoint=entrypoint, metadata={key: value}, runtimeEnvYAML=runtime_env)
    _, body = run_in_bash(submitter_script(job, ADDRESS), record)
    sent = json.loads(body)
    assert sent == submission(job)
    assert (sent["entrypoint"], sent["metadata"]) == (entrypoint.strip(), {key: value})
    assert sent["runtime_env"]["env_vars"]["A"] == env


FAKE_RAY = """
class JobSubmissionClient:
    def __init__(self, address): ...
    def get_job_status(self, job_id): raise RuntimeError
    def submit_job(self, **job): print("submitted", flush=True)
    async def tail_job_logs(self, job_id):
        import asyncio
        await asyncio.Event().wait()
        yield ""
"""


@pytest.mark.parametrize(("is_healthy", "said"), [(False, "Waiting for Ray"), (True, "submitted")])
def test_a_submitter_ends_as_soon_as_it_is_told_to(is_healthy: bool, said: str, tmp_path: Path) -> None:
    """While it waits for Ray, and while it follows the job. The kernel keeps SIGTERM from a first process that does not
    ask for it, so its pod would take the whole grace period."""
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "job_submission.py").write_text(FAKE_RAY)
    python = tmp_path / "python3"
    health = f"if [ $# -eq 3 ]; then exit {0 if is_healthy else 1}; fi"
    python.write_text(f'#!/bin/bash\n{health}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(tmp_path)}
    script = ["/bin/bash", "-ce", "--", submitter_script(a_job("Running"), ADDRESS)]
    with subprocess.Popen(script, env=env, stdout=subprocess.PIPE, text=True) as submitter:
        assert submitter.stdout is not None
        assert said in submitter.stdout.readline()
        submitter.terminate()
        assert submitter.wait(timeout=PATIENCE_SECONDS) == 143


def test_everything_that_ray_can_be_told_is_told() -> None:
    job = a_job(
        "Running",
        entrypoint="  python job.py ",
        runtimeEnvYAML="pip: [requests]\nenv_vars:\n  A: 'x'\n",
        entrypointNumCpus=1.5,
        entrypointNumGpus=2,
        entrypointResources='{"special": 1}',
    )
    assert submission(job) == {
        "entrypoint": "python job.py",
        "submission_id": "counter-abcde",
        "runtime_env": {"pip": ["requests"], "env_vars": {"A": "x"}},
        "entrypoint_num_cpus": 1.5,
        "entrypoint_num_gpus": 2.0,
        "entrypoint_resources": {"special": 1.0},
    }


@pytest.mark.parametrize("text", ["a: [", "just words", "- a\n- b", "!!python/object:os.system x", 'a: "\\ud800"'])
def test_a_runtime_env_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="YAML"):
        parse_runtime_env(msgspec.convert({"runtimeEnvYAML": text}, RayJobSpec))


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": "b"}', "words"])
def test_resources_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        parse_resources(msgspec.convert({"entrypointResources": text}, RayJobSpec))


def test_the_submitter_is_a_job_of_the_rayjobs_own_name() -> None:
    job = a_job("Running", {"dashboardURL": "head.ns.svc:8265"})
    made = desired_submitter(job, CLUSTER, SubmitterDefaults())
    assert made["metadata"]["name"] == "counter"
    assert made["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "counter",
        "ray.io/originated-from-crd": "RayJob",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    assert made["metadata"]["ownerReferences"][0]["uid"] == "job-uid"
    pod = made["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert (made["spec"]["backoffLimit"], pod["restartPolicy"]) == (2, "Never")
    assert (container["name"], container["image"]) == ("ray-job-submitter", "rayproject/ray:2.60.0")
    assert container["resources"] == DEFAULT_RESOURCES
    assert container["command"] == ["/bin/bash", "-ce", "--"]
    assert {entry["name"]: entry["value"] for entry in container["env"]} == {
        "PYTHONUNBUFFERED": "1",
        "RAY_DASHBOARD_ADDRESS": "head.ns.svc:8265",
        "RAY_JOB_SUBMISSION_ID": "counter-abcde",
    }


@pytest.mark.parametrize("image", ["", "raykeeper:1"])
def test_the_kubelet_expands_nothing_of_what_the_user_wrote(image: str) -> None:
    written = "kill $$; echo $(RAY_JOB_SUBMISSION_ID) $HOME"
    made = desired_submitter(a_job("Running", entrypoint=written), CLUSTER, SubmitterDefaults(image=image))
    (*_, argument) = made["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "kill $$$$; echo $$(RAY_JOB_SUBMISSION_ID) $$HOME" in argument


def test_the_operators_own_image_is_told_the_job_without_a_shell() -> None:
    spec: JSON = {
        "entrypoint": "python job.py 'a  b'",
        "runtimeEnvYAML": "env_vars:\n  A: '1'\n",
        "metadata": {"team": "it's ours"},
        "entrypointNumCpus": 0.5,
        "entrypointResources": '{"TPU": 2}',
    }
    job = a_job("Running", {"dashboardURL": "head.ns.svc:8265"}, **spec)
    made = desired_submitter(job, CLUSTER, SubmitterDefaults(image="raykeeper:1"))
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("raykeeper:1", ["/submitter"])
    assert container["resources"] == LIGHT_RESOURCES
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    told = read_settings(container["args"], variables)
    assert told.address == "head.ns.svc:8265"
    assert told.job == msgspec.convert(submission(job), JobSubmission)


@given(entrypoint=ANY_TEXT.filter(str.strip))
def test_any_entrypoint_reaches_the_light_submitter(entrypoint: str) -> None:
    job = a_job("Running", entrypoint=entrypoint)
    variables = {"RAY_DASHBOARD_ADDRESS": "head:8265", "RAY_JOB_SUBMISSION_ID": "x"}
    assert read_settings(submitter_arguments(job), variables).job.entrypoint == entrypoint.strip()


def test_a_light_submitter_stands_beside_the_head_too() -> None:
    job = a_job("Initializing", submissionMode="SidecarMode")
    made = desired_cluster(job, CLUSTER_SPEC, SubmitterDefaults(image="raykeeper:1"))
    container = made["spec"]["headGroupSpec"]["template"]["spec"]["containers"][1]
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    assert container["command"] == ["/submitter"]
    assert variables["RAY_DASHBOARD_ADDRESS"] == "127.0.0.1:8265"


def test_the_users_own_submitter_keeps_its_command_and_variables() -> None:
    container = {
        "name": "mine",
        "image": "mine:1",
        "command": ["run"],
        "env": [{"name": "PYTHONUNBUFFERED", "value": "0"}],
    }
    template = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [container]},
    }
    config = {"backoffLimit": 5, "resources": {"limits": {"cpu": "2"}}}
    job = a_job("Running", submitterPodTemplate=template, submitterConfig=config)
    made = desired_submitter(job, CLUSTER, SubmitterDefaults())
    mine = made["spec"]["template"]["spec"]["containers"][0]
    assert (mine["command"], "args" in mine, mine["env"][0]["value"]) == (["run"], False, "0")
    assert (made["spec"]["backoffLimit"], made["spec"]["template"]["spec"]["restartPolicy"]) == (5, "OnFailure")
    assert made["spec"]["template"]["metadata"]["labels"]["team"] == "a"
    assert container["env"] == [{"name": "PYTHONUNBUFFERED", "value": "0"}], "the user's own is left as it is"


def test_resources_of_the_submitter_need_no_whole_template() -> None:
    job = a_job("Running", submitterConfig={"resources": {"limits": {"cpu": "2"}}})
    made = desired_submitter(job, CLUSTER, SubmitterDefaults(uses_login_shell=True))
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "2"}}
    assert container["command"][1] == "-cel"


def test_a_submitter_gets_the_clusters_token() -> None:
    spec = msgspec.convert(CLUSTER_SPEC | {"authOptions": {"mode": "token"}}, RayClusterSpec)
    made = desired_submitter(a_job("Running"), RayCluster(CLUSTER.metadata, spec), SubmitterDefaults())
    env = {entry["name"]: entry for entry in made["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "counter-fghij"


def test_the_cluster_of_a_job_is_what_the_user_wrote() -> None:
    job = a_job("Initializing")
    spec: JSON = CLUSTER_SPEC | {"fieldOfTomorrow": 1}
    made = desired_cluster(job, spec, SubmitterDefaults())
    assert made["metadata"]["name"] == "counter-fghij"
    assert made["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "counter",
        "ray.io/originated-from-crd": "RayJob",
        "ray.io/job-submission-mode": "K8sJobMode",
    }
    assert made["spec"] == spec


def test_a_sidecar_submits_from_beside_the_head() -> None:
    job = a_job("Initializing", submissionMode="SidecarMode")
    made = desired_cluster(job, CLUSTER_SPEC, SubmitterDefaults())
    pod = made["spec"]["headGroupSpec"]["template"]["spec"]
    assert [container["name"] for container in pod["containers"]] == ["ray", "ray-job-submitter"]
    assert pod["restartPolicy"] == "Never"
    assert "http://127.0.0.1:8265" in pod["containers"][1]["args"][0]
    assert made["metadata"]["annotations"]["ray.io/disable-provisioned-head-restart"] == "true"
    assert len(TEMPLATE["spec"]["containers"]) == 1, "the user's own is left as it is"


TERMINATED = {"terminated": {"exitCode": 0, "message": "SUCCEEDED", "finishedAt": "2026-11-16T12:00:00Z"}}
POD = {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"name": "ray-job-submitter", "state": TERMINATED}]}}


def test_a_sidecar_is_started_again_where_the_gate_is_on_and_only_there() -> None:
    job = a_job("Initializing", submissionMode="SidecarMode", submitterConfig={"backoffLimit": 5})
    for is_on, policy, restarts in ((True, "OnFailure", 5), (False, None, 0)):
        made = desired_cluster(job, CLUSTER_SPEC, SubmitterDefaults(restarts_sidecars=is_on))
        ray, submitter = made["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
        assert (ray.get("restartPolicy"), submitter.get("restartPolicy")) == (None, policy)
        assert most_restarts(job, msgspec.convert(made["spec"], RayClusterSpec)) == restarts


def test_how_a_submitter_ended_is_read_from_its_job_and_its_pod() -> None:
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-16T12:00:00Z"}
    ended = job_outcome({"status": {"conditions": [complete]}}, [POD], None)
    assert (ended.has_finished, ended.has_failed, ended.finished_at, ended.ray_status) == (
        True,
        False,
        NOW,
        "SUCCEEDED",
    )
    failed = {"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}
    lost = job_outcome({"status": {"conditions": [failed]}}, [], None)
    assert (lost.has_finished, lost.has_failed) == (True, True)
    assert "backoff limit" in lost.message
    waiting = job_outcome({}, [], Trouble("ErrImagePull", "no"))
    assert (waiting.has_finished, waiting.trouble) == (False, Trouble("ErrImagePull", "no"))


def test_how_a_sidecar_ended_is_read_from_the_head_pod() -> None:
    ended = sidecar_outcome(POD)
    assert ended is not None
    assert (ended.has_finished, ended.has_failed, ended.ray_status) == (True, False, "SUCCEEDED")
    assert sidecar_outcome({"metadata": {}, "status": {}}) is None


FAILURE = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-16T12:00:00Z"}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.parametrize(
    ("status", "has_failed", "waits"),
    [
        ({"state": FAILURE, "restartCount": 0}, False, True),
        ({"state": BACK_OFF, "lastState": FAILURE, "restartCount": 1}, False, True),
        ({"state": {"running": {}}, "lastState": FAILURE, "restartCount": 2}, False, False),
        ({"state": BACK_OFF, "lastState": FAILURE, "restartCount": 2}, True, False),
        ({"state": FAILURE, "restartCount": 2}, True, False),
        ({"state": TERMINATED, "lastState": FAILURE, "restartCount": 2}, False, False),
    ],
)
def test_a_sidecar_has_failed_once_its_last_restart_failed(status: JSON, has_failed: bool, waits: bool) -> None:
    pod = {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"name": "ray-job-submitter", **status}]}}
    found = sidecar_outcome(pod, 2)
    assert found is not None
    assert (found.has_failed, found.trouble is not None) == (has_failed, waits)
    assert found.has_finished == (has_failed or status["state"] == TERMINATED)

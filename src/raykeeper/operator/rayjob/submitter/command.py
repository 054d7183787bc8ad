"""The command by which a submitter gives a job to Ray. Pure.

What the user wrote as entrypoint, metadata and runtime environment is what Ray gets, character by character: it travels
as one quoted JSON argument, and no shell looks into it. (`ray job submit` joins the words of an entrypoint anew, in
another way in each version.)
"""

from __future__ import annotations

import shlex
from typing import Any, Final

import msgspec

from raykeeper.api.meta import JSON, ObjectMeta
from raykeeper.api.rayjob import RayJob, RayJobSpec, RayJobStatus
from raykeeper.api.yaml_text import parse_mapping

HEALTH: Final = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10)"
"""Fails until the GCS is up."""

SUBMIT: Final = """\
import asyncio, json, signal, sys

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
from ray.job_submission import JobSubmissionClient

address, job = sys.argv[1], json.loads(sys.argv[2])
client, job_id = JobSubmissionClient(address), job["submission_id"]
try:
    client.get_job_status(job_id)
except RuntimeError:
    client.submit_job(**job)


async def follow():
    async for lines in client.tail_job_logs(job_id):
        print(lines, end="", flush=True)


asyncio.run(follow())
status = client.get_job_status(job_id)
print("Job", job_id, "ended:", getattr(status, "value", status), flush=True)
try:
    with open("/dev/termination-log", "w") as last_word:
        last_word.write(str(getattr(status, "value", status)))
except OSError:
    pass
"""
"""Submits a job that Ray does not know yet, and prints its output to the end.

It leaves Ray's word about the end where the kubelet reads it. It ends well also when the job failed: Kubernetes would
otherwise start it again, to print the same once more. As the first process of a container it does not hear SIGTERM
unless it listens."""


def submission(job: RayJob) -> JSON:
    """The job in the words of Ray's API. Raises `ValueError` for what is no YAML or JSON."""
    spec = job.spec
    body: JSON = {"entrypoint": spec.entrypoint.strip(), "submission_id": job.status.job_id}
    if runtime_env := parse_runtime_env(spec):
        body["runtime_env"] = runtime_env
    if spec.metadata:
        body["metadata"] = spec.metadata
    if spec.entrypoint_num_cpus > 0:
        body["entrypoint_num_cpus"] = spec.entrypoint_num_cpus
    if spec.entrypoint_num_gpus > 0:
        body["entrypoint_num_gpus"] = spec.entrypoint_num_gpus
    if resources := parse_resources(spec):
        body["entrypoint_resources"] = resources
    return body


def parse_runtime_env(spec: RayJobSpec) -> JSON:
    """`runtimeEnvYAML` as JSON; empty where it is. Raises `ValueError` for what is no YAML mapping."""
    return parse_mapping(spec.runtime_env_yaml)


def parse_resources(spec: RayJobSpec) -> dict[str, float]:
    """`entrypointResources`; empty where it is. Raises `ValueError` for what is no JSON object of numbers."""
    if not spec.entrypoint_resources.strip():
        return {}
    try:
        return msgspec.json.decode(spec.entrypoint_resources.strip().strip("'"), type=dict[str, float])
    except msgspec.MsgspecError as error:
        raise ValueError(f"it is not a JSON object of numbers: {error}") from error


def submitter_script(job: RayJob, address: str) -> str:
    """The script that bash runs: wait for Ray, then submit and follow."""
    body = msgspec.json.encode(submission(job)).decode()
    health, waiting = f"{address}/api/gcs_healthz", f"Waiting for Ray Dashboard GCS to become healthy at {address} ..."
    return (
        "trap 'exit 143' TERM ; "
        f"until {shlex.join(['python3', '-c', HEALTH, health])} >/dev/null 2>&1 ; "
        f"do echo {shlex.quote(waiting)} ; sleep 2 ; done ; "
        f"exec {shlex.join(['python3', '-c', SUBMIT, address, body])}"
    )


MOST_ARGUMENT_BYTES: Final = 131_071
"""Of one argument of a program; Linux starts none with a longer one."""
_LONGEST_NAME: Final = "x" * 253


def script_bytes(spec: RayJobSpec) -> int:
    """How long the script is, which bash gets as one argument. Raises `ValueError` for what is no YAML or JSON."""
    job = RayJob(ObjectMeta(), spec, RayJobStatus(job_id=spec.job_id or _LONGEST_NAME))
    return len(submitter_script(job, f"http://{_LONGEST_NAME}").encode())


FLAGS: Final = {
    "runtime_env": "--runtime-env-json",
    "metadata": "--metadata-json",
    "entrypoint_num_cpus": "--entrypoint-num-cpus",
    "entrypoint_num_gpus": "--entrypoint-num-gpus",
    "entrypoint_resources": "--entrypoint-resources",
}
"""How the program `submitter`, KubeRay's or ours, is told what Ray calls by other names."""


def submitter_arguments(job: RayJob) -> list[str]:
    """The arguments of the program `submitter`, which needs neither a shell nor Ray's Python."""
    body = submission(job)
    flags = [word for key, flag in FLAGS.items() if key in body for word in (flag, _compact(body[key]))]
    return [*flags, "--", body["entrypoint"]]


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def for_kubelet(text: str) -> str:
    """An argument that reaches the container as it is: the kubelet takes `$$` for `$`, and `$(NAME)` for a variable."""
    return text.replace("$", "$$")


def shell(*, is_login: bool) -> list[str]:
    return ["/bin/bash", "-cel" if is_login else "-ce", "--"]

"""The container that submits a job, in a pod of its own or beside the head. Pure."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

from raykeeper.api.containers import JOB_SUBMITTER
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import ray_container
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.rayjob.submitter.command import for_kubelet, shell, submitter_arguments, submitter_script
from raykeeper.operator.shared.credentials import add_credentials
from raykeeper.operator.shared.env import env_of, literal, missing

DEFAULT_RESOURCES: Final[JSON] = {
    "requests": {"cpu": "500m", "memory": "200Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}


LIGHT_RESOURCES: Final[JSON] = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"cpu": "1", "memory": "256Mi"},
}
"""For an image with the program `submitter`."""
LIGHT_COMMAND: Final = "/submitter"


@dataclass(frozen=True)
class SubmitterDefaults:
    """What the operator says about submitters."""

    uses_login_shell: bool = False
    image: str = ""
    """An image with `/submitter` in it; the head's own when empty."""
    restarts_sidecars: bool = False
    """Whether the kubelet starts a submitter beside the head again after it failed."""


def default_container(job: RayJob, cluster: RayCluster, defaults: SubmitterDefaults) -> JSON:
    """The image of the head, whose Ray fits, or the light one."""
    resources = job.spec.submitter_config.resources if job.spec.submitter_config else None
    if defaults.image:
        container: JSON = {"name": JOB_SUBMITTER, "image": defaults.image, "command": [LIGHT_COMMAND]}
        return container | {
            "args": [for_kubelet(word) for word in submitter_arguments(job)],
            "resources": copy.deepcopy(resources or LIGHT_RESOURCES),
        }
    image = ray_container(cluster.spec.head_group_spec.template).get("image", "")
    return {"name": JOB_SUBMITTER, "image": image, "resources": copy.deepcopy(resources or DEFAULT_RESOURCES)}


def complete_container(
    job: RayJob, cluster: RayCluster, pod: JSON, container: JSON, address: str, defaults: SubmitterDefaults
) -> None:
    """Give a container its command, unless it has one, and the variables by which it finds Ray."""
    if not container.get("command"):
        container["command"] = shell(is_login=defaults.uses_login_shell)
        container["args"] = [for_kubelet(submitter_script(job, address))]
    env = env_of(container)
    needed = [
        literal("PYTHONUNBUFFERED", "1"),
        literal("RAY_DASHBOARD_ADDRESS", job.status.dashboard_url or address.removeprefix("http://")),
        literal("RAY_JOB_SUBMISSION_ID", job.status.job_id),
    ]
    container["env"] = [*env, *missing(env, needed)]
    add_credentials(cluster, pod, container)

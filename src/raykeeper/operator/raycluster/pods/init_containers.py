"""The init container in which workers wait for the head: a `ray start` that finds no GCS gives up and is restarted
with ever longer pauses.
"""

from __future__ import annotations

from typing import Final

from raykeeper.api.containers import WAIT_GCS_READY
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.pods.ray_node import RayNode
from raykeeper.operator.raycluster.pods.ray_start import shell
from raykeeper.operator.shared.env import env_of

RESOURCES: Final = {"cpu": "200m", "memory": "256Mi"}

# Errors of the check are shown only after two minutes: before that they only say that the head is starting.
WAIT: Final = """\
exec 3>/dev/null
until ray health-check --address {address} >&3 2>&1; do
  echo "$SECONDS s: the GCS at {address} is not ready"
  (( SECONDS < 120 )) || exec 3>&1
  sleep 5
done
echo "$SECONDS s: the GCS at {address} is ready"
"""


def wait_for_gcs(node: RayNode) -> JSON:
    """The container, with what the user's Ray container has to reach the head: its variables, mounts and user."""
    ray = node.users_container
    container: JSON = {
        "name": WAIT_GCS_READY,
        "image": ray.get("image", ""),
        "command": shell(node.defaults),
        "args": [WAIT.format(address=node.head_address)],
        "env": env_of(ray),
        "resources": {"limits": RESOURCES, "requests": RESOURCES},
    }
    copied = ("imagePullPolicy", "securityContext", "volumeMounts")
    return container | {name: ray[name] for name in copied if ray.get(name)}

"""How containers prove who they are to a Ray cluster, whether they run in one of its pods or elsewhere.

Every container that talks to Ray goes through here, so encryption between the pods belongs beside it.
"""

from __future__ import annotations

from typing import Final

from raykeeper.api import names
from raykeeper.api.containers import AUTH_TOKEN_KEY, RAY_TOKEN_PATH, RAY_TOKEN_VOLUME
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.shared.env import env_of, from_secret, literal, missing
from raykeeper.operator.shared.features import is_kubernetes_token_auth, is_token_auth
from raykeeper.operator.shared.mounts import attach

TOKEN_SECONDS: Final = 3600  # the kubelet renews it in time; also the shortest that it renews without haste


def auth_env(cluster: RayCluster) -> list[JSON]:
    """The variables by which Ray asks for tokens and shows its own; none where anybody may talk to it."""
    if not is_token_auth(cluster.spec):
        return []
    mode = literal("RAY_AUTH_MODE", "token")
    if is_kubernetes_token_auth(cluster.spec):
        return [mode, literal("RAY_ENABLE_K8S_TOKEN_AUTH", "true")]
    return [mode, from_secret("RAY_AUTH_TOKEN", names.auth_secret_name(cluster), AUTH_TOKEN_KEY)]


def add_credentials(cluster: RayCluster, spec: JSON, container: JSON) -> None:
    """Let a container of a pod talk to a cluster that asks for tokens. Variables that it has already are kept."""
    env = env_of(container)
    if added := missing(env, auth_env(cluster)):
        container["env"] = [*env, *added]
    if is_token_auth(cluster.spec) and is_kubernetes_token_auth(cluster.spec):
        mount = {"name": RAY_TOKEN_VOLUME, "mountPath": RAY_TOKEN_PATH, "readOnly": True}
        attach(spec, container, _token_volume(), mount)


def _token_volume() -> JSON:
    """A token of the pod's service account for Ray alone, beside the one for the API server."""
    token = {"path": "token", "expirationSeconds": TOKEN_SECONDS}
    return {"name": RAY_TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}

"""The token by which a cluster lets the operator in, read from its Secret when it is needed."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from raykeeper.api import names
from raykeeper.api.containers import AUTH_TOKEN_KEY
from raykeeper.api.meta import ObjectKey
from raykeeper.api.raycluster import RayCluster
from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError
from raykeeper.kube.resources import SECRETS
from raykeeper.operator.shared.features import is_kubernetes_token_auth, is_token_auth
from raykeeper.ray.credentials import Credentials, NoToken, StaticToken

KEPT_SECONDS = 30.0
"""How long a token is used before its Secret is read again. A user's own Secret is in no cache of ours."""
MOST_TOKENS = 10_000
"""Above this many, all are read again: more clusters than one operator is made for."""


@dataclass
class Tokens:
    """Tokens by Secret, each read at most twice a minute."""

    kube: Kube
    clock: Clock
    _kept: dict[ObjectKey, tuple[float, Credentials]] = field(default_factory=dict)

    async def credentials(self, cluster: RayCluster) -> Credentials:
        """What a request to the cluster's head carries. Raises `Unavailable` while the Secret cannot be read.

        A cluster that asks Kubernetes about each caller's own token gets none: as in KubeRay, the operator has none
        that such a cluster would take.
        """
        if not is_token_auth(cluster.spec) or is_kubernetes_token_auth(cluster.spec):
            return NoToken()
        key = ObjectKey(cluster.metadata.namespace, names.auth_secret_name(cluster))
        until, kept = self._kept.get(key, (0.0, NoToken()))
        if self.clock.steady() < until:
            return kept
        if len(self._kept) >= MOST_TOKENS:
            self._kept.clear()
        credentials = StaticToken(await self._read(key))
        self._kept[key] = (self.clock.steady() + KEPT_SECONDS, credentials)
        return credentials

    def forget(self, cluster: RayCluster) -> None:
        """Read the Secret again before the next request: the head did not want the token."""
        self._kept.pop(ObjectKey(cluster.metadata.namespace, names.auth_secret_name(cluster)), None)

    async def _read(self, key: ObjectKey) -> str:
        service = f"Secret {key}"
        try:
            secret = await self.kube.get(SECRETS, key)
            token = base64.b64decode((secret.get("data") or {})[AUTH_TOKEN_KEY]).decode("ascii").strip()
        except ApiError as exc:
            raise Unavailable(service, str(exc)) from exc
        except (KeyError, binascii.Error, UnicodeDecodeError) as exc:
            raise Unavailable(service, f"it has no readable {AUTH_TOKEN_KEY}") from exc
        if not token.isprintable():
            raise Unavailable(service, f"its {AUTH_TOKEN_KEY} is not one line")
        return token

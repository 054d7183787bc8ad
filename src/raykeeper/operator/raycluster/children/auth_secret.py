"""The Secret with the token that lets callers into a Ray cluster."""

from __future__ import annotations

import base64
from typing import Final

from raykeeper.api import labels
from raykeeper.api.containers import AUTH_TOKEN_KEY
from raykeeper.api.meta import JSON
from raykeeper.api.names import auth_secret_name
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.shared.children.drift import Drift, drift
from raykeeper.operator.shared.children.metadata import child_metadata
from raykeeper.operator.shared.owner import Owner

TOKEN_BYTES: Final = 32
"""How many random bytes a token is made of."""


def desired_auth_secret(cluster: RayCluster, random_bytes: bytes) -> JSON:
    """The Secret with a token made from the random bytes; a token that exists is never replaced by it."""
    token = base64.b64encode(random_bytes)
    child_labels = {labels.CLUSTER: cluster.metadata.name}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": child_metadata(Owner.of(cluster), auth_secret_name(cluster), child_labels),
        "data": {AUTH_TOKEN_KEY: base64.b64encode(token).decode()},
    }


def auth_secret_drift(desired: JSON, actual: JSON) -> Drift:
    """Labels are put right, and a token that got lost is made anew: without one no pod of the cluster can start."""
    has_token = bool((actual.get("data") or {}).get(AUTH_TOKEN_KEY))
    return drift(desired, actual, {} if has_token else {"data": desired["data"]})

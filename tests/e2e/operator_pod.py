"""The operator as a pod: our own image, a ServiceAccount, and what it may do."""

from __future__ import annotations

from collections.abc import Sequence

from bed.rest import Json
from e2e.cluster import a_pod
from e2e.own_image import OWN_IMAGE
from support.operator_rights import RULES, WITH_GATEWAYS, granted

OPERATOR = "raykeeper-operator"
COMMAND = ("manager",)  # as KubeRay's manifests call it


def operator_objects(namespace: str, *flags: str) -> list[tuple[str, Json]]:
    """What an installation consists of, each with the collection it goes to; it watches its own namespace."""
    subject = {"kind": "ServiceAccount", "name": OPERATOR, "namespace": namespace}
    return [
        (f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": OPERATOR}}),
        # Cluster-wide names: the namespace keeps those of two tests apart.
        *granted(f"{OPERATOR}-{namespace}", (*RULES, WITH_GATEWAYS), subject),
        (f"/api/v1/namespaces/{namespace}/pods", _pod(namespace, flags)),
    ]


def _pod(namespace: str, flags: Sequence[str]) -> Json:
    probe = {"httpGet": {"path": "/readyz", "port": 8082}, "periodSeconds": 1}
    limits = {"cpu": "1", "memory": "512Mi"}  # as in KubeRay's chart, with its memory
    command = [*COMMAND, f"--watch-namespace={namespace}", *flags]
    pod = a_pod(OPERATOR, command, image=OWN_IMAGE, readinessProbe=probe, resources={"limits": limits})
    pod["spec"]["serviceAccountName"] = OPERATOR
    return pod

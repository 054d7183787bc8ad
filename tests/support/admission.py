"""A rule of the real API server that refuses pods, as a company's admission policy does."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import Invalid
from raykeeper.kube.resources import PODS
from support.conditions import eventually

GROUP, VERSION = "admissionregistration.k8s.io", "v1"
POLICIES: Resource[JSON] = Resource(
    GROUP, VERSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", dict, namespaced=False
)
BINDINGS: Resource[JSON] = Resource(
    GROUP, VERSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", dict, namespaced=False
)
UNWANTED = {"team": "unwanted"}
"""Labels of the pods that are refused."""
SENTENCE = "the team has no budget left"


@contextlib.asynccontextmanager
async def refusing_pods(kube: Kube, namespace: str, operation: str = "CREATE") -> AsyncIterator[None]:
    """Refuse pods with the labels `UNWANTED` in one namespace, from the first line of the block to its end.

    With `DELETE` they are made, and stay.
    """
    name = f"no-budget-{operation.lower()}-{namespace}"
    container = {"name": "c", "image": "i"}
    pod = {"metadata": {"name": "probe", "labels": UNWANTED}, "spec": {"containers": [container]}}
    await kube.create(POLICIES, _policy(name, operation))
    await kube.create(BINDINGS, _binding(name, namespace))

    async def is_enforced() -> bool:
        try:
            await kube.create(PODS, pod, namespace, dry_run=operation == "CREATE")
            if operation == "DELETE":
                await kube.delete(PODS, ObjectKey(namespace, "probe"), grace_seconds=0)
        except Invalid:
            return True
        return False

    await eventually(is_enforced)
    try:
        yield
    finally:
        await kube.delete_collection(BINDINGS, fields=f"metadata.name={name}")
        await kube.delete_collection(POLICIES, fields=f"metadata.name={name}")


def _policy(name: str, operation: str) -> JSON:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["pods"]}
    pod = "oldObject" if operation == "DELETE" else "object"
    expression = f"{pod}.metadata.?labels.team.orValue('') != 'unwanted'"
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": POLICIES.kind,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": SENTENCE}],
        },
    }


def _binding(name: str, namespace: str) -> JSON:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": BINDINGS.kind,
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        },
    }

"""What the API server lets us do."""

from __future__ import annotations

from typing import Any

from raykeeper.api.meta import Resource
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError
from raykeeper.kube.resources import SELF_SUBJECT_ACCESS_REVIEWS


async def may(kube: Kube, verb: str, resource: Resource[Any], namespace: str = "") -> bool:
    """Whether we may do this in a namespace, or, without one, in all of them. False where that cannot be asked."""
    attributes = {"verb": verb, "group": resource.group, "resource": resource.plural, "namespace": namespace}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    try:
        answer = await kube.create(SELF_SUBJECT_ACCESS_REVIEWS, {**review, "spec": {"resourceAttributes": attributes}})
    except ApiError:
        return False
    return bool(answer.get("status", {}).get("allowed"))

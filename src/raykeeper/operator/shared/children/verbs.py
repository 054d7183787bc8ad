"""How a child of each kind may be changed, so that everything works with the rights of KubeRay's own ClusterRole.

Whoever changes nothing but the operator's image keeps that role. It grants PATCH for what KubeRay patches, only PUT for
what it replaces, and no change at all of RoleBindings and ServiceAccounts. The latter are patched all the same, where a
setting changes the annotations that we gave them: that is refused there, and nothing waits for it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.client import Kube
from raykeeper.kube.merge import merged


class Update(Enum):
    """The way in which a kind is changed."""

    PATCH = auto()
    PUT = auto()
    """The object is read, changed and written back whole, unless somebody else changed it meanwhile."""
    NEVER = auto()
    """It stays as it is, or is deleted and made anew."""


_OTHER_THAN_PATCH: Final = {
    "Secret": Update.PUT,
    "Role": Update.PUT,
    "NetworkPolicy": Update.PUT,
    "Gateway": Update.PUT,
    "HTTPRoute": Update.PUT,
    "PodGroup": Update.PUT,
    "Workload": Update.PUT,
    "Certificate": Update.PUT,
    "Issuer": Update.PUT,
    "RoleBinding": Update.NEVER,
}


def update_verb(kind: str) -> Update:
    """How a child of the kind is changed."""
    return _OTHER_THAN_PATCH.get(kind, Update.PATCH)


async def update_child(kube: Kube, resource: Resource[Any], key: ObjectKey, patch: JSON) -> JSON | None:
    """The object after a merge patch, sent in the way that its kind allows; None where it allows none.

    Raises `Conflict` where a PUT, or a patch with a resourceVersion, met another's change.
    """
    objects: Resource[JSON] = resource.read_as(dict)
    match update_verb(resource.kind):
        case Update.PATCH:
            return await kube.merge_patch(objects, key, patch)
        case Update.PUT:
            return await kube.replace(objects, merged(await kube.get(objects, key), patch))
        case Update.NEVER:
            return None

"""What all Kubernetes objects share, as slim structs, and how a kind is addressed.

Structs here are for reading only: they drop what they do not name, so writing one back would lose newer fields.
Objects to be written are plain JSON (`dict`).
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

_PATH_CHARACTERS: Final = ":@!$&'()*+,;=~"
"""Beside letters and digits: what means nothing special inside a segment of a path (RFC 3986)."""

JSON = dict[str, Any]
"""A Kubernetes object, or part of one, as it stands in JSON."""


class ObjectKey(NamedTuple):
    """Namespace and name; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class OwnerReference(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """Who an object belongs to; at most one owner has `controller` set."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(msgspec.Struct, gc=False, rename="camel"):
    """Metadata without `managedFields`, which is half of an object's bytes and never read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Object(msgspec.Struct, gc=False):
    """Any object of which spec and status are all that matters, both left as the bytes the server sent.

    `gc=False` because a cache holds tens of thousands of them and none can be part of a cycle.
    """

    metadata: ObjectMeta
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    @property
    def controller_uid(self) -> str | None:
        """The uid of the controlling owner."""
        return next((owner.uid for owner in self.metadata.owner_references if owner.controller), None)


T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Resource(Generic[T]):
    """Where a kind lives in the API, and what one of its objects is read as."""

    group: str
    version: str
    plural: str
    kind: str
    type: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def read_as(self, kind: builtins.type[U]) -> Resource[U]:
        """The same objects, read as another type."""
        return Resource(self.group, self.version, self.plural, self.kind, kind, self.namespaced)

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of a collection (`name` is None), an object or a subresource. `namespace` None means all."""
        parts = ["", "apis", self.group, self.version] if self.group else ["", "api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(quote(part, safe=_PATH_CHARACTERS) for part in parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

"""The base of the `ray.io` types: immutable, tolerant of fields it does not know, spelled in JSON as KubeRay does."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from raykeeper.api.meta import ObjectKey, ObjectMeta

ACRONYMS = frozenset({"cpu", "gpu", "ip", "tpu", "url", "yaml"})
"""Words that Kubernetes' style writes in capitals: `podIP`, `desiredCPU`, `dashboardURL`, `runtimeEnvYAML`."""

T = TypeVar("T")


def json_name(field: str) -> str:
    """The name of a field in JSON: `pod_ip` is `podIP`, `enable_k8s_token_auth` is `enableK8sTokenAuth`."""
    first, *words = field.split("_")
    return first + "".join(word.upper() if word in ACRONYMS else word.capitalize() for word in words)


class ApiStruct(msgspec.Struct, frozen=True, gc=False, rename=json_name, omit_defaults=True):
    """Part of an object of the group `ray.io`.

    Specs are for reading only: they drop what they do not name. A status is made by us alone, so it is written as well;
    what equals its default is left out then, as Go's `omitempty` does.
    """


class RayObject(ApiStruct, frozen=True):
    """A whole object: beside its metadata it has a `spec` and a `status`."""

    metadata: ObjectMeta

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.metadata.namespace, self.metadata.name)


def parse_part(part: msgspec.Raw, kind: type[T]) -> T:
    """The spec or status of a cached object as a struct of its own; a part that is missing is read as `{}`.

    Raises `msgspec.ValidationError`, which names the field, where it is not one.
    """
    return msgspec.json.decode(part or b"{}", type=kind)

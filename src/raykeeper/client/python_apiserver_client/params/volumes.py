"""Volumes of pods, one class for each kind."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from raykeeper.client.python_apiserver_client.params.wire import Parameters, either, numbered, other_name, wire
from raykeeper.errors import Unavailable


class HostPath(enum.Enum):
    DIRECTORY = 0
    FILE = 1


class MountPropagationMode(enum.Enum):
    NONE = 0
    HOSTTOCONTAINER = 1
    BIDIRECTIONAL = 2


class AccessMode(enum.Enum):
    """Read-write by one node, read-only by many, read-write by many."""

    RWO = 0
    ROX = 1
    RWX = 2


class BaseVolume(Parameters):
    """What all of them are; pods have one of the classes below."""

    volume_type: ClassVar[int] = -1

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "volumeType": self.volume_type}


@dataclass
class PVCVolume(BaseVolume):
    """A claim by its name, `source`."""

    volume_type: ClassVar[int] = 0
    SHOWN_AS: ClassVar[str] = ", volume type = PVC"
    name: str = wire("name", absent="")
    mount_path: str = wire("mountPath", absent="")
    source: str = wire("source", absent="")
    read_only: bool = wire("readOnly", default=False, absent=False, is_sent=bool)
    mount_propagation: MountPropagationMode | None = wire(
        "mountPropagationMode", numbered(MountPropagationMode), default=None
    )

    readonly = other_name("read_only")


@dataclass
class HostPathVolume(BaseVolume):
    """A folder or file of the node, at `source`."""

    volume_type: ClassVar[int] = 1
    SHOWN_AS: ClassVar[str] = ", volume type = hostPath"
    name: str = wire("name", absent="")
    mount_path: str = wire("mountPath", absent="")
    source: str = wire("source", absent="")
    host_path_type: HostPath | None = wire("hostPathType", numbered(HostPath), default=None)
    mount_propagation: MountPropagationMode | None = wire(
        "mountPropagationMode", numbered(MountPropagationMode), default=None
    )


@dataclass
class EphemeralVolume(BaseVolume):
    """A claim that lives as long as the pod; `storage` is its size, such as 5Gi."""

    volume_type: ClassVar[int] = 2
    SHOWN_AS: ClassVar[str] = ", volume type = ephemeral"
    name: str = wire("name", absent="")
    mount_path: str = wire("mountPath", absent="")
    storage: str = wire("storage", absent="")
    storage_class: str | None = wire("storageClassName", default=None)
    access_mode: AccessMode | None = wire("accessMode", numbered(AccessMode), default=None)
    mount_propagation: MountPropagationMode | None = wire(
        "mountPropagationMode", numbered(MountPropagationMode), default=None
    )


@dataclass
class ConfigMapVolume(BaseVolume):
    """Keys of a ConfigMap as files; `items` has paths by key, without it there are all."""

    volume_type: ClassVar[int] = 3
    SHOWN_AS: ClassVar[str] = ", volume type = configmap"
    name: str = wire("name", absent="")
    mount_path: str = wire("mountPath", absent="")
    source: str = wire("source", absent="")
    items: dict[str, str] | None = wire("items", default=None)


@dataclass
class SecretVolume(BaseVolume):
    """Keys of a Secret as files; `items` has paths by key, without it there are all."""

    volume_type: ClassVar[int] = 4
    SHOWN_AS: ClassVar[str] = ", volume type = secret"
    name: str = wire("name", absent="")
    mount_path: str = wire("mountPath", absent="")
    source: str = wire("source", absent="")
    items: dict[str, str] | None = wire("items", default=None)


@dataclass
class EmptyDirVolume(BaseVolume):
    """An empty folder that lives as long as the pod; `storage` is the most it may hold."""

    volume_type: ClassVar[int] = 5
    SHOWN_AS: ClassVar[str] = ", volume type = emptyDir"
    name: str = wire("name", absent="")
    mount_path: str = wire("mountPath", absent="")
    storage: str | None = wire("storage", default=None)


_KINDS: Final[tuple[type[BaseVolume], ...]] = (
    PVCVolume,
    HostPathVolume,
    EphemeralVolume,
    ConfigMapVolume,
    SecretVolume,
    EmptyDirVolume,
)


def volume_decoder(dst: Mapping[str, Any]) -> BaseVolume:
    """The volume of an answer; one without a type is a claim, whose number is zero. Raises Unavailable."""
    number = either(dst, "volumeType", 0)
    for kind in _KINDS:
        if str(kind.volume_type) == str(number):
            return kind.from_dict(dst)
    raise Unavailable("the API server", f"it answered with a volume of the unknown type {str(number)[:100]!r}")

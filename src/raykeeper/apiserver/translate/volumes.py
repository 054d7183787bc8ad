"""Volumes of pods and where they are mounted: one message for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raykeeper.api.meta import JSON
from raykeeper.apiserver.errors import Untranslatable
from raykeeper.apiserver.protos.cluster_pb2 import Volume
from raykeeper.apiserver.translate.metadata import COMPONENT, MANAGED_BY
from raykeeper.apiserver.translate.quantities import canonical, check_amount

_PROPAGATION = {Volume.HOSTTOCONTAINER: "HostToContainer", Volume.BIDIRECTIONAL: "Bidirectional"}
_PROPAGATION_MODES = {text: mode for mode, text in _PROPAGATION.items()}
_ACCESS_MODES = {Volume.RWO: "ReadWriteOnce", Volume.ROX: "ReadOnlyMany", Volume.RWX: "ReadWriteMany"}
_ACCESS = {text: mode for mode, text in _ACCESS_MODES.items()}


def to_mounts(volumes: Iterable[Volume]) -> list[JSON]:
    return [_mount(volume) for volume in volumes]


def _mount(volume: Volume) -> JSON:
    mount: JSON = {"name": volume.name, "mountPath": volume.mount_path}
    if volume.read_only:
        mount["readOnly"] = True
    if (propagation := _PROPAGATION.get(volume.mount_propagation_mode)) is not None:
        mount["mountPropagation"] = propagation
    return mount


def to_volumes(volumes: Iterable[Volume]) -> list[JSON]:
    """The `volumes` of a pod. Raises `Untranslatable` for a size that is none."""
    return [{"name": volume.name, **_source(volume)} for volume in volumes if volume.volume_type in _SOURCES]


def _source(volume: Volume) -> JSON:
    return _SOURCES[volume.volume_type](volume)


def _config_map(volume: Volume) -> JSON:
    return {"configMap": {"name": volume.source, **_items(volume)}}


def _secret(volume: Volume) -> JSON:
    return {"secret": {"secretName": volume.source, **_items(volume)}}


def _items(volume: Volume) -> JSON:
    items = [{"key": key, "path": path} for key, path in sorted(volume.items.items())]
    return {"items": items} if items else {}


def _empty_dir(volume: Volume) -> JSON:
    if not volume.storage:
        return {"emptyDir": {}}
    check_amount(volume.storage, "storage for empty dir volume is not specified correctly", is_told_why=False)
    return {"emptyDir": {"sizeLimit": volume.storage}}


def _host_path(volume: Volume) -> JSON:
    kind = "File" if volume.host_path_type == Volume.FILE else "Directory"
    return {"hostPath": {"path": volume.source, "type": kind}}


def _claim(volume: Volume) -> JSON:
    read_only = {"readOnly": True} if volume.read_only else {}
    return {"persistentVolumeClaim": {"claimName": volume.source, **read_only}}


def _ephemeral(volume: Volume) -> JSON:
    if not volume.storage:
        raise Untranslatable("storage for ephemeral volume is empty")
    check_amount(volume.storage, "storage for ephemeral volume is not specified correctly", is_told_why=False)
    spec: JSON = {
        "accessModes": [_ACCESS_MODES.get(volume.accessMode, "ReadWriteOnce")],
        "resources": {"requests": {"storage": volume.storage}},
    }
    if volume.storageClassName:
        spec["storageClassName"] = volume.storageClassName
    claim = {"metadata": {"labels": {MANAGED_BY: COMPONENT}}, "spec": spec}
    return {"ephemeral": {"volumeClaimTemplate": claim}}


_SOURCES = {
    Volume.PERSISTENT_VOLUME_CLAIM: _claim,
    Volume.HOST_PATH: _host_path,
    Volume.EPHEMERAL: _ephemeral,
    Volume.CONFIGMAP: _config_map,
    Volume.SECRET: _secret,
    Volume.EMPTY_DIR: _empty_dir,
}


def from_mounts(mounts: Sequence[JSON]) -> list[Volume]:
    """The volumes of the autoscaler, of which only the mounts are its own."""
    return [
        Volume(
            name=mount.get("name"),
            mount_path=mount.get("mountPath"),
            read_only=mount.get("readOnly", False),
            mount_propagation_mode=_propagation(mount),
        )
        for mount in mounts
    ]


def from_pod(pod_spec: JSON) -> list[Volume]:
    """The volumes of a pod, with the first mount of each; other kinds of volume are left out."""
    mounts: dict[str, JSON] = {}
    for container in pod_spec.get("containers") or ():
        for mount in container.get("volumeMounts") or ():
            mounts.setdefault(mount.get("name", ""), mount)
    found = (_volume(volume, mounts.get(volume.get("name", ""), {})) for volume in pod_spec.get("volumes") or ())
    return [volume for volume in found if volume is not None]


def _volume(volume: JSON, mount: JSON) -> Volume | None:
    for kind, read in _READERS.items():
        if (source := volume.get(kind)) is not None:
            message = Volume(name=volume.get("name"), mount_path=mount.get("mountPath", ""))
            read(message, source, mount)
            return message
    return None


def _read_config_map(message: Volume, source: JSON, mount: JSON) -> None:  # noqa: ARG001 - one of several readers
    message.volume_type = Volume.CONFIGMAP
    message.source = source.get("name", "")
    _read_items(message, source)


def _read_secret(message: Volume, source: JSON, mount: JSON) -> None:  # noqa: ARG001 - one of several readers
    message.volume_type = Volume.SECRET
    message.source = source.get("secretName", "")
    _read_items(message, source)


def _read_items(message: Volume, source: JSON) -> None:
    message.items.update({item.get("key", ""): item.get("path", "") for item in source.get("items") or ()})


def _read_empty_dir(message: Volume, source: JSON, mount: JSON) -> None:  # noqa: ARG001 - one of several readers
    message.volume_type = Volume.EMPTY_DIR
    message.storage = canonical(source.get("sizeLimit", ""))


def _read_host_path(message: Volume, source: JSON, mount: JSON) -> None:
    message.volume_type = Volume.HOST_PATH
    message.source = source.get("path", "")
    message.host_path_type = Volume.FILE if source.get("type") == "File" else Volume.DIRECTORY
    message.mount_propagation_mode = _propagation(mount)


def _read_claim(message: Volume, source: JSON, mount: JSON) -> None:
    message.volume_type = Volume.PERSISTENT_VOLUME_CLAIM
    message.source = source.get("claimName", "")
    message.read_only = source.get("readOnly", False)
    message.mount_propagation_mode = _propagation(mount)


def _read_ephemeral(message: Volume, source: JSON, mount: JSON) -> None:
    spec = (source.get("volumeClaimTemplate") or {}).get("spec") or {}
    requests = (spec.get("resources") or {}).get("requests") or {}
    message.volume_type = Volume.EPHEMERAL
    message.mount_propagation_mode = _propagation(mount)
    message.accessMode = _ACCESS.get(next(iter(spec.get("accessModes") or ()), ""), Volume.RWO)
    message.storage = canonical(requests.get("storage", "0"))
    message.storageClassName = spec.get("storageClassName", "")


_READERS = {
    "configMap": _read_config_map,
    "secret": _read_secret,
    "emptyDir": _read_empty_dir,
    "hostPath": _read_host_path,
    "persistentVolumeClaim": _read_claim,
    "ephemeral": _read_ephemeral,
}


def _propagation(mount: JSON) -> Volume.MountPropagationMode:
    return _PROPAGATION_MODES.get(mount.get("mountPropagation", ""), Volume.NONE)

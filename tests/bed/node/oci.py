"""Container images as an OCI archive: a tar with the layers, three small JSON files per image and one index.

No registry and no builder is needed to make one, and containerd imports it as it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CREATED = "2024-01-01T00:00:00Z"  # fixed: the same content is the same image
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
COMPRESSED_LAYER_TYPE = f"{LAYER_TYPE}+gzip"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Layer:
    """A layer that is compressed already."""

    path: Path
    diff_id: str
    """Digest of the tar inside."""


@dataclass(frozen=True)
class Image:
    """What one image is made of and what runs when a pod says nothing else."""

    name: str
    layers: Sequence[Path | Layer]
    """The lowest first; a path is a tar that is not compressed."""
    user: str = "0"
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Sequence[str] = (f"PATH={DEFAULT_PATH}",)
    folder: str = "/"
    architecture: str = ""
    """This machine's where it is empty."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Blob:
    """A piece of an archive, addressed by its digest; large ones stay on disk until they are copied in."""

    digest: str
    size: int
    content: bytes | Path

    @classmethod
    def of_json(cls, document: object) -> Blob:
        data = json.dumps(document, sort_keys=True).encode()
        return cls(f"sha256:{hashlib.sha256(data).hexdigest()}", len(data), data)

    @classmethod
    def of_file(cls, path: Path) -> Blob:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(f"sha256:{digest}", path.stat().st_size, path)

    @property
    def path(self) -> str:
        return f"blobs/{self.digest.replace(':', '/')}"

    def descriptor(self, media_type: str) -> dict[str, object]:
        """How other parts of the archive point here."""
        return {"mediaType": media_type, "digest": self.digest, "size": self.size}


def full_name(name: str) -> str:
    """The name as the kubelet's runtime looks it up: `redis:7` is `docker.io/library/redis:7`."""
    host, slash, _ = name.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def architecture() -> str:
    """This machine's architecture in the spelling of images."""
    machine = platform.machine()
    return _GO_ARCHITECTURES.get(machine, machine)


def write_archive(target: Path, images: Sequence[Image]) -> None:
    """Write `images` as one archive in which a layer they share is stored once. A file that is there is whole."""
    files = dict.fromkeys(_file(layer) for image in images for layer in image.layers)
    layers = {path: Blob.of_file(path) for path in files}
    blobs = {blob.digest: blob for blob in layers.values()}
    manifests, names = [], []
    for image in images:
        below = [layers[_file(layer)] for layer in image.layers]
        config, manifest = _image_blobs(image, below)
        blobs |= {config.digest: config, manifest.digest: manifest}
        # The name under which containerd files the image.
        name = {"annotations": {"io.containerd.image.name": full_name(image.name)}}
        manifests.append(manifest.descriptor(MANIFEST_TYPE) | name)
        names.append({"Config": config.path, "RepoTags": [image.name], "Layers": [layer.path for layer in below]})
    index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests}
    unfinished = target.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w") as archive:
        _add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(archive, "index.json", json.dumps(index).encode())
        _add(archive, "manifest.json", json.dumps(names).encode())  # for `docker load`
        for blob in blobs.values():
            _add(archive, blob.path, blob.content)
    unfinished.rename(target)


def _file(layer: Path | Layer) -> Path:
    return layer.path if isinstance(layer, Layer) else layer


def _image_blobs(image: Image, layers: Sequence[Blob]) -> tuple[Blob, Blob]:
    """The image's configuration and the manifest that ties it to its layers."""
    compressed = [layer.diff_id if isinstance(layer, Layer) else "" for layer in image.layers]
    diff_ids = [diff_id or layer.digest for diff_id, layer in zip(compressed, layers, strict=True)]
    types = [COMPRESSED_LAYER_TYPE if diff_id else LAYER_TYPE for diff_id in compressed]
    config = Blob.of_json(
        {
            "architecture": image.architecture or architecture(),
            "os": "linux",
            "created": CREATED,
            "config": {
                "User": image.user,
                "Entrypoint": list(image.entrypoint),
                "Cmd": list(image.command),
                "Env": list(image.environment),
                "WorkingDir": image.folder,
                "Labels": dict(image.labels),
            },
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        }
    )
    manifest = Blob.of_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.descriptor(CONFIG_TYPE),
            "layers": [layer.descriptor(kind) for layer, kind in zip(layers, types, strict=True)],
        }
    )
    return config, manifest


def _add(archive: tarfile.TarFile, name: str, content: bytes | Path) -> None:
    entry = tarfile.TarInfo(name)
    if isinstance(content, bytes):
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
        return
    entry.size = content.stat().st_size
    with content.open("rb") as file:
        archive.addfile(entry, file)

"""Container images as an OCI archive: a tar with the layers, three small JSON files per image and one index.

No registry and no builder is needed to make one, and containerd imports it as it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CREATED = "2024-01-01T00:00:00Z"  # fixed: the same content is the same image
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """What one image is made of and what runs when a pod says nothing else."""

    name: str
    layers: Sequence[Path]
    """Uncompressed tars, the lowest first."""
    user: str = "0"
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Sequence[str] = (f"PATH={DEFAULT_PATH}",)
    folder: str = "/"


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
    layers = {path: Blob.of_file(path) for image in images for path in image.layers}
    blobs = {blob.digest: blob for blob in layers.values()}
    manifests = []
    for image in images:
        config, manifest = _image_blobs(image, [layers[path] for path in image.layers])
        blobs |= {config.digest: config, manifest.digest: manifest}
        # The name under which containerd files the image.
        name = {"annotations": {"io.containerd.image.name": full_name(image.name)}}
        manifests.append(manifest.descriptor(MANIFEST_TYPE) | name)
    index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests}
    unfinished = target.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w") as archive:
        _add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(archive, "index.json", json.dumps(index).encode())
        for blob in blobs.values():
            _add(archive, blob.path, blob.content)
    unfinished.rename(target)


def _image_blobs(image: Image, layers: Sequence[Blob]) -> tuple[Blob, Blob]:
    """The image's configuration and the manifest that ties it to its layers."""
    config = Blob.of_json(
        {
            "architecture": architecture(),
            "os": "linux",
            "created": CREATED,
            "config": {
                "User": image.user,
                "Entrypoint": list(image.entrypoint),
                "Cmd": list(image.command),
                "Env": list(image.environment),
                "WorkingDir": image.folder,
            },
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        }
    )
    manifest = Blob.of_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.descriptor(CONFIG_TYPE),
            "layers": [layer.descriptor(LAYER_TYPE) for layer in layers],
        }
    )
    return config, manifest


def _add(archive: tarfile.TarFile, name: str, content: bytes | Path) -> None:
    if isinstance(content, Path):
        archive.add(content, name)
        return
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))

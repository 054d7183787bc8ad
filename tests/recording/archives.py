"""Recorded sessions as files of the repository: the objects of a store under their keys, with the times they had.

Times matter: whether a head runs or fell silent is judged by when its heartbeat was stored last.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import zstandard

from raykeeper.layout.keys import LogPackKey, parse_polled_key, parse_sealed_key
from raykeeper.layout.packs import PackWriter, parse_index, read_frame

ARCHIVES = Path(__file__).parent.parent / "golden" / "failures"
LIMIT_BYTES = 400_000
_LEVEL = 19
_KEPT_LOGS = re.compile(
    r"worker-.*\.(?:out|err)|job-driver-.*\.log|runtime_env_setup-.*\.log|(?:serve|train|ray-data)/.*\.log"
)
"""What users' code and Ray's libraries wrote; components of Ray write megabytes that no report reads."""
_KEPT_ANSWERS = (
    *("/api/jobs/", "/api/v0/placement_groups", "/api/cluster_status", "/api/version", "/timezone"),
    *("/api/serve/applications/", "/api/train/v2/runs"),
)
_PLACES = re.compile(rb"/(?:work|root|home)/[^\n\"\\]*")
"""Folders of whoever recorded, and what else ran there: they say nothing to anybody else."""


class UnfitRecording(Exception):
    """The recording cannot be kept; the text says why."""


def archive_file(name: str) -> Path:
    return ARCHIVES / f"{name}.tar.zst"


def pack_store(store: Path, name: str) -> Path:
    """Keep a folder store as an archive, without what no report reads. Raises UnfitRecording."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for key, data, modified in _kept_objects(store):
            member = tarfile.TarInfo(key)
            member.size, member.mtime = len(data), int(modified)
            tar.addfile(member, io.BytesIO(data))
    archive = zstandard.ZstdCompressor(level=_LEVEL).compress(packed.getvalue())
    if len(archive) > LIMIT_BYTES:
        raise UnfitRecording(f"{name} has {len(archive)} bytes, more than {LIMIT_BYTES}")
    file = archive_file(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(archive)
    return file


def unpack_into(store: Path, archive: Path) -> list[str]:
    """Put the archive's objects into a folder store, beside those that are there; their keys."""
    with (
        archive.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as data,
        tarfile.open(fileobj=data, mode="r|") as tar,
    ):
        keys = []
        for member in tar:
            tar.extract(member, store, filter="data")
            keys.append(member.name)
        return keys


def _kept_objects(store: Path) -> Iterator[tuple[str, bytes, float]]:
    """Key, bytes and time of every object that stays, by key."""
    for file in sorted(path for path in store.rglob("*") if path.is_file()):
        key = file.relative_to(store).as_posix()
        data = _reduced(key, file.read_bytes())
        if data is not None:
            yield key, data, file.stat().st_mtime


def _reduced(key: str, data: bytes) -> bytes | None:
    """The object without what is not needed; None where nothing of it is."""
    answer = parse_polled_key(key)
    if not key.startswith("v1/") or (answer and not answer.name.startswith(_KEPT_ANSWERS)):
        return None
    if isinstance(parse_sealed_key(key), LogPackKey):
        return _reduced_pack(data)
    if key.endswith(".zst"):
        text = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
        return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(_overwritten(text))
    return _overwritten(data)


def _reduced_pack(pack: bytes) -> bytes | None:
    index, kept = parse_index(pack), PackWriter()
    for frame in index.frames:
        if _KEPT_LOGS.fullmatch(frame.path):
            data = _overwritten(read_frame(frame, pack[frame.position : frame.position + frame.size]))
            kept.add(frame.path, frame.generation, frame.offset, data, frame.read_ns, is_whole=frame.is_whole)
    for gap in index.gaps:
        if _KEPT_LOGS.fullmatch(gap.path):
            kept.add_gap(gap)
    return kept.to_bytes() if kept else None


def _overwritten(text: bytes) -> bytes:
    """Without names of places, yet as long as before: tasks know their logs by offsets."""
    return _PLACES.sub(lambda found: b"/" + b"." * (len(found[0]) - 1), text)

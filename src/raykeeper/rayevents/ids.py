"""Ray's ids: base64 in events, lower-case hex everywhere else. Pure."""

from __future__ import annotations

import base64
import binascii

NODE_ID_BYTES = 28
WORKER_ID_BYTES = 28
TASK_ID_BYTES = 24
ACTOR_ID_BYTES = 16
JOB_ID_BYTES = 4


def to_hex(encoded: str, size: int) -> str | None:
    """The hex form of an id of `size` bytes; None for one that is unset, nil or of another length."""
    raw = _decoded(encoded)
    if raw is None or len(raw) != size or is_nil(raw):
        return None
    return raw.hex()


def to_base64(hex_id: str) -> str:
    """The form an id has in events."""
    return base64.b64encode(bytes.fromhex(hex_id)).decode()


def is_nil(raw: bytes) -> bool:
    """Whether this is Ray's way to say "none": every bit set."""
    return raw == b"\xff" * len(raw)


def _decoded(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters beyond ASCII
        return None

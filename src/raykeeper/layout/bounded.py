"""Text that was written by anybody: how much of it there may be, before it is read. Pure."""

from __future__ import annotations

import zstandard


def decompressed(data: bytes, limit: int) -> bytes:
    """The text of one frame of zstd, whatever that says of its own size.

    Raises zstandard.ZstdError for damage, and for more than `limit` bytes.
    """
    size = zstandard.frame_content_size(data)
    if size > limit:  # the library would reserve what the frame claims, before it looks at the bound
        raise zstandard.ZstdError(f"{size} bytes where at most {limit} may be")
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=max(limit, 1))


def element_bound(text: bytes | bytearray) -> int:
    """No more elements than this are in a JSON text; marks inside of strings count, too.

    Decoded, each is an object of 50 to 90 bytes, though `[],` are three.
    """
    return text.count(b",") + text.count(b"[") + text.count(b"{")

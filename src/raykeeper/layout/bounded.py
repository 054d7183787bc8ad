"""zstd that was written by anybody: decompressed up to a bound, whatever it says of its own size. Pure."""

from __future__ import annotations

import zstandard


def decompressed(data: bytes, limit: int) -> bytes:
    """The text of one frame. Raises zstandard.ZstdError for damage, and for more than `limit` bytes."""
    size = zstandard.frame_content_size(data)
    if size > limit:  # the library would reserve what the frame claims, before it looks at the bound
        raise zstandard.ZstdError(f"{size} bytes where at most {limit} may be")
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=max(limit, 1))

"""The recorded run of Ray, for the tests of ingest."""

from __future__ import annotations

from support.raycapture import raycapture

__all__ = ["raycapture"]

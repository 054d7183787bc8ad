"""The recorded run of Ray, whose session folders are imported."""

from __future__ import annotations

from support.raycapture import raycapture

__all__ = ["raycapture"]

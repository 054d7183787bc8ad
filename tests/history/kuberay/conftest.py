"""The recorded run of Ray, for buckets as KubeRay would have filled them."""

from __future__ import annotations

from support.raycapture import raycapture

__all__ = ["raycapture"]

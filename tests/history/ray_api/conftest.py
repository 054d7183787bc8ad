"""The recorded run is unpacked and ingested once for all tests of endpoints."""

from support.goldensession import ingested_moments
from support.raycapture import raycapture

__all__ = ["ingested_moments", "raycapture"]

"""The recorded run is unpacked and ingested once for all tests of search."""

from goldensession import ingested_moments
from raycapture import raycapture

__all__ = ["ingested_moments", "raycapture"]

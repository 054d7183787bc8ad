"""Recorded runs are unpacked and ingested once for all tests of overviews."""

from goldensession import ingested_moments
from raycapture import raycapture
from recorded_failures import recorded_failures

__all__ = ["ingested_moments", "raycapture", "recorded_failures"]

"""Recorded runs are unpacked and ingested once for all tests of overviews."""

from support.goldensession import ingested_moments
from support.raycapture import raycapture
from support.recorded_failures import recorded_failures

__all__ = ["ingested_moments", "raycapture", "recorded_failures"]

"""The recorded run and the recorded failures are unpacked and ingested once for all tests of reports."""

from support.goldensession import ingested_moments
from support.raycapture import raycapture
from support.recorded_failures import recorded_failures, recorded_reports

__all__ = ["ingested_moments", "raycapture", "recorded_failures", "recorded_reports"]

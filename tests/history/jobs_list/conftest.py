"""The recorded run is unpacked once for all tests of lists of jobs."""

from support.raycapture import raycapture

__all__ = ["raycapture"]

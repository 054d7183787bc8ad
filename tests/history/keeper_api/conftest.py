"""The recorded run is unpacked once for all tests of the JSON API."""

from support.raycapture import raycapture

__all__ = ["raycapture"]

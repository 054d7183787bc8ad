"""The recorded failures, behind a history server."""

from support.recorded_failures import recorded_failures

__all__ = ["recorded_failures"]

"""Moments of Kubernetes as `google.protobuf.Timestamp`."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from raykeeper.api.times import parse_time
from raykeeper.times import EPOCH

NO_MOMENT = Timestamp(seconds=-62135596800)
"""Go's zero time, in the year 1: what KubeRay says where there is no moment."""


def to_timestamp(text: str | None) -> Timestamp:
    """To the second; `NO_MOMENT` where there is none."""
    moment = parse_time(text)
    return NO_MOMENT if moment is None else Timestamp(seconds=whole_seconds(moment))


def whole_seconds(moment: datetime) -> int:
    return int((moment - EPOCH).total_seconds() // 1)


def go_now(moment: datetime) -> str:
    """As Go prints a moment in UTC, which KubeRay writes into annotations."""
    fraction = f".{moment.microsecond:06}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"

"""Curves and hours as they are answered: every class is an object of the JSON API, every field one of its members.

Pure data. Arrays are as long as `at`, with None where nothing is known: a chart draws them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Source = Literal["sampled", "polled", "none"]
CurveName = Literal["cpu", "memory", "gpu", "gpu_memory", "object_store", "disk", "network_received", "network_sent"]
Numbers = tuple[float | None, ...]


@dataclass(frozen=True)
class Curve:
    """One resource of all nodes that were asked for, added up."""

    name: CurveName
    unit: str
    """`CPUs`, `GPUs`, `bytes` or `bytes/s`."""
    mean: Numbers
    """What was used, on average over each part of the time."""
    min: Numbers
    """The least within the part."""
    max: Numbers
    """The greatest within it."""
    total: Numbers | None
    """What the nodes had; None where nobody knows."""
    reserved: Numbers | None
    """What Ray had given to tasks and actors; None where nobody knows."""


@dataclass(frozen=True)
class GpuCurve:
    """One GPU of a node."""

    index: int
    name: str
    used: Numbers
    """Of the whole GPU: from 0 to 1."""
    memory: Numbers
    """Bytes."""
    memory_total: Numbers


@dataclass(frozen=True)
class Curves:
    """What some nodes used over some time."""

    begin: datetime
    end: datetime
    width_seconds: int
    """Of each part of the time."""
    resolution_seconds: int
    """What is shorter than this does not show in `min` and `max`."""
    at: tuple[int, ...]
    """Where the parts begin, in seconds since 1970."""
    nodes: tuple[int, ...]
    """How many nodes were measured in each of them."""
    curves: tuple[Curve, ...]
    """Without those of which nothing is known."""
    gpus: tuple[GpuCurve, ...]
    """One by one, if one node was asked for."""
    source: Source
    """`sampled` by the collector of each node every ten seconds, `polled` from the head once a minute, or nothing."""
    notes: tuple[str, ...]
    """What is missing or may mislead, in sentences."""
    unread_hours: int
    """Hours of samples that are still being read: ask again."""


@dataclass(frozen=True)
class MeasuredHours:
    """One resource over the whole time. Memory is in GiB."""

    name: str
    """`CPU`, `GPU`, `memory`, `gpu_memory` or `object_store_memory`."""
    available: float | None
    """What the nodes had, times the hours they were there."""
    reserved: float | None
    """What Ray had given to tasks and actors."""
    used: float | None


@dataclass(frozen=True)
class NodeUsage:
    """One node over the time."""

    node_id: str
    hours: float
    """For which it was measured."""
    cpus: float | None
    cpu_mean: float | None
    cpu_peak: float | None
    memory_total: float | None
    """Bytes, as all memory here."""
    memory_mean: float | None
    memory_peak: float | None
    gpus: float | None
    gpu_mean: float | None
    gpu_memory_peak: float | None
    gpu_type: str
    """Empty where it has none; several are separated by commas."""

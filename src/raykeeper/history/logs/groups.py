"""The groups in which Ray lists log files, by their names. Pure; the words and their order are Ray's."""

from __future__ import annotations

from collections.abc import Iterable

_BY_WORD = (
    ("raylet.", "raylet"),
    ("gcs_server.", "gcs_server"),
    ("log_monitor", "internal"),
    ("monitor", "autoscaler"),
    ("agent.", "agent"),
    ("dashboard.", "dashboard"),
)


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Group to names, in the order they come."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(group_of(name), []).append(name)
    return groups


def group_of(name: str) -> str:
    """Where Ray's log page shows this file or folder."""
    if "worker" in name and name.endswith(".out"):
        return "worker_out"
    if "worker" in name and name.endswith(".err"):
        return "worker_err"
    if "core-worker" in name and name.endswith(".log"):
        return "core_worker"
    if "core-driver" in name and name.endswith(".log"):
        return "driver"
    return next((group for word, group in _BY_WORD if word in name), "internal")

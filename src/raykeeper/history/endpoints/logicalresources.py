"""What a node had to offer, as the dashboard's text has it; without what was in use where nobody measured it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from raykeeper.history.asked import Row
from raykeeper.history.endpoints.rayjson import optional_json

NOT_MEASURED = "(use was not measured)"

_IN_BYTES = ("memory", "object_store_memory")
_OF_ONE_NODE = "node:"
_UNITS = ("GiB", "MiB", "KiB")


def all_logical_resources(measured: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, Any]:
    """One text for each node: as it was measured, or else what one that lives said of itself when it came."""
    alive = [row for row in rows if row["state"] == "ALIVE"]
    made = {row["node_id"]: offered_text(optional_json(row["resources_total"]) or {}) for row in alive}
    return {**{node_id: text for node_id, text in made.items() if text}, **measured}


def offered_text(resources: Mapping[str, float]) -> str:
    """One line for each resource; empty where there is none."""
    named = sorted((name, amount) for name, amount in resources.items() if not name.startswith(_OF_ONE_NODE))
    lines = [f"{_bytes(amount) if name in _IN_BYTES else amount} {name}" for name, amount in named]
    return "\n".join([*lines, NOT_MEASURED]) if lines else ""


def _bytes(amount: float) -> str:
    for power, unit in zip((3, 2, 1), _UNITS, strict=True):
        if amount >= 1024**power:
            return f"{amount / 1024**power:.2f}{unit}"
    return f"{int(amount)}B"

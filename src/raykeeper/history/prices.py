"""The price list: what an hour of a node's resources costs, by namespace, cluster, labels and type.

Its file is YAML, or JSON, which is YAML too. A mistake in it stops the server at its start, by the line it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from raykeeper.settings.yaml_file import (
    YamlFileError,
    elements_of,
    line_of,
    members_of,
    pairs_of,
    parse_yaml,
    read_yaml_file,
    text_of,
    texts_of,
)

MAX_RULES = 1000
_CURRENCY_CHARS = 16


@dataclass(frozen=True)
class NodeFacts:
    """What a rule may ask of a node."""

    namespace: str
    cluster: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Ray's labels of the node."""
    instance_type: str = ""
    """As Ray's autoscaler names it: the worker group."""


@dataclass(frozen=True)
class NodeHoursUsed:
    """Hours of one node by resource; GiB-hours for memory."""

    node: float
    cpu: float
    memory: float
    gpus: Mapping[str, float]
    """By the type of GPU; the empty one is not known."""


@dataclass(frozen=True)
class Price:
    """One rule: whom it is about, and what an hour costs."""

    namespace: str = "*"
    cluster: str = "*"
    labels: Mapping[str, str] = field(default_factory=dict)
    instance_type: str = "*"
    node_hour: float = 0.0
    cpu_hour: float = 0.0
    memory_gib_hour: float = 0.0
    gpu_hour: Mapping[str, float] = field(default_factory=dict)
    """By a part of the GPU's name, in any case, or a pattern with `*`; the first that fits counts."""

    def matches(self, node: NodeFacts) -> bool:
        return (
            fnmatchcase(node.namespace, self.namespace)
            and fnmatchcase(node.cluster, self.cluster)
            and fnmatchcase(node.instance_type, self.instance_type)
            and all(fnmatchcase(node.labels.get(name, ""), pattern) for name, pattern in self.labels.items())
        )

    def cost(self, hours: NodeHoursUsed) -> dict[str, float]:
        """By resource; of GPUs also by type. What the rule has no price for is left out."""
        amounts = {
            "node": hours.node * self.node_hour,
            "CPU": hours.cpu * self.cpu_hour,
            "memory": hours.memory * self.memory_gib_hour,
        }
        for name, number in hours.gpus.items():
            if (price := self.of_gpu(name)) is not None:
                amounts[f"GPU {name}".strip()] = number * price
        return {name: amount for name, amount in amounts.items() if amount}

    def of_gpu(self, name: str) -> float | None:
        return next((price for pattern, price in self.gpu_hour.items() if _is_gpu(pattern, name)), None)


@dataclass(frozen=True)
class PriceList:
    """Rules, the first that fits a node counts."""

    currency: str
    prices: tuple[Price, ...]
    storage_gb_month: float | None = None
    """What 10^9 bytes in the store cost a month; None shows no cost of storage."""

    def of_node(self, node: NodeFacts) -> Price | None:
        return next((price for price in self.prices if price.matches(node)), None)


def read_price_list(setting: str, path: Path) -> PriceList:
    """Raises Misconfigured, which names the file and the line."""
    return read_yaml_file(setting, path, parse_price_list)


def parse_price_list(text: bytes) -> PriceList:
    """Raises YamlFileError."""
    root = parse_yaml(text, "`currency` and `prices`")
    members = members_of(root, ("currency", "prices", "storage_gb_month"))
    for name in ("currency", "prices"):
        if name not in members:
            raise YamlFileError(line_of(root), f"{name} is missing")
    prices = members["prices"]
    if prices.id != "sequence" or not prices.value:
        raise YamlFileError(line_of(prices), "prices must be a list of rules")
    rules = elements_of(prices, "rules", MAX_RULES)
    storage = _amount(members["storage_gb_month"]) if "storage_gb_month" in members else None
    return PriceList(text_of(members["currency"], _CURRENCY_CHARS), tuple(map(_price, rules)), storage)


def _price(node: Any) -> Price:
    members = members_of(node, _RULE)
    values: dict[str, Any] = {name: _RULE[name](value) for name, value in members.items()}
    if not any(name.endswith("_hour") for name in values):
        raise YamlFileError(line_of(node), f"the rule has no price: give {', '.join(_HOURS)}")
    return Price(**values)


def _amount(node: Any) -> float:
    try:
        amount = float(node.value) if node.id == "scalar" else math.nan
    except ValueError:
        amount = math.nan
    if not 0 <= amount < 1e12:  # NaN is in no range
        raise YamlFileError(line_of(node), "a price must be a number of 0 or more")
    return amount


def _gpu_amounts(node: Any) -> dict[str, float]:
    if node.id != "mapping":
        return {"*": _amount(node)}
    return {text_of(key): _amount(value) for key, value in pairs_of(node)}


_HOURS = ("node_hour", "cpu_hour", "memory_gib_hour", "gpu_hour")
_RULE: Mapping[str, Callable[[Any], object]] = {
    "namespace": text_of,
    "cluster": text_of,
    "labels": texts_of,
    "instance_type": text_of,
    "node_hour": _amount,
    "cpu_hour": _amount,
    "memory_gib_hour": _amount,
    "gpu_hour": _gpu_amounts,
}


def _is_gpu(pattern: str, name: str) -> bool:
    wanted, found = pattern.lower(), name.lower()
    return fnmatchcase(found, wanted) if "*" in wanted or "?" in wanted else wanted in found

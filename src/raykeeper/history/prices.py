"""The price list: what an hour of a node's resources costs, by namespace, cluster, labels and type.

Its file is YAML, or JSON, which is YAML too. A mistake in it stops the server at its start, by the line it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from raykeeper.errors import Misconfigured

MAX_BYTES = 128 << 10
"""Of the file: a thousand rules. YAML is read at some 200 KB a second."""
MAX_RULES = 1000
MAX_TEXT = 256
_CURRENCY_CHARS = 16
T = TypeVar("T")


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

    def of_node(self, node: NodeFacts) -> Price | None:
        return next((price for price in self.prices if price.matches(node)), None)


def read_price_list(setting: str, path: Path) -> PriceList:
    """Raises Misconfigured, which names the file and the line."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise Misconfigured(setting, str(path), f"it must be a readable file ({exc.strerror})") from exc
    try:
        return parse_price_list(text)
    except PriceListError as exc:
        raise Misconfigured(setting, str(path), str(exc)) from exc


class PriceListError(ValueError):
    """What is wrong, and in which line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")


def parse_price_list(text: bytes) -> PriceList:
    """Raises PriceListError."""
    import yaml  # here, because it costs a server without prices 3 MB

    if len(text) > MAX_BYTES:
        raise PriceListError(1, f"it is longer than {MAX_BYTES} bytes")
    try:
        root = yaml.compose(text.decode(), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise PriceListError(mark.line + 1 if mark else 1, f"no YAML: {exc.problem or exc.context}") from exc
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as exc:
        raise PriceListError(1, f"no YAML: {exc}") from exc
    if root is None:
        raise PriceListError(1, "it is empty; it needs `currency` and `prices`")
    members = _members(root, ("currency", "prices"))
    for name in ("currency", "prices"):
        if name not in members:
            raise PriceListError(_line(root), f"{name} is missing")
    rules = members["prices"]
    if rules.id != "sequence" or not rules.value:
        raise PriceListError(_line(rules), "prices must be a list of rules")
    if len(rules.value) > MAX_RULES:
        raise PriceListError(_line(rules), f"there are more than {MAX_RULES} rules")
    return PriceList(_text(members["currency"], _CURRENCY_CHARS), tuple(map(_price, rules.value)))


def _price(node: Any) -> Price:
    members = _members(node, _RULE)
    values: dict[str, Any] = {name: _RULE[name](value) for name, value in members.items()}
    if not any(name.endswith("_hour") for name in values):
        raise PriceListError(_line(node), f"the rule has no price: give {', '.join(_HOURS)}")
    return Price(**values)


def _members(node: Any, known: Mapping[str, object] | tuple[str, ...]) -> dict[str, Any]:
    """The members of a mapping, each once, none unknown."""
    found: dict[str, Any] = {}
    for key, value in _pairs(node):
        name = _text(key)
        if name not in known:
            raise PriceListError(_line(key), f"{name!r} is not known; there are {', '.join(known)}")
        if name in found:
            raise PriceListError(_line(key), f"{name!r} is given twice")
        found[name] = value
    return found


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    if node.id != "mapping":
        raise PriceListError(_line(node), "here must be names with values")
    yield from node.value


def _text(node: Any, limit: int = MAX_TEXT) -> str:
    if node.id != "scalar" or not 0 < len(node.value) <= limit or not node.value.isprintable():
        raise PriceListError(_line(node), f"here must be a text of at most {limit} characters")
    return str(node.value)


def _texts(node: Any) -> dict[str, str]:
    return {_text(key): _text(value) for key, value in _pairs(node)}


def _amount(node: Any) -> float:
    try:
        amount = float(node.value) if node.id == "scalar" else math.nan
    except ValueError:
        amount = math.nan
    if not 0 <= amount < 1e12:  # NaN is in no range
        raise PriceListError(_line(node), "a price must be a number of 0 or more")
    return amount


def _gpu_amounts(node: Any) -> dict[str, float]:
    if node.id != "mapping":
        return {"*": _amount(node)}
    return {_text(key): _amount(value) for key, value in _pairs(node)}


_HOURS = ("node_hour", "cpu_hour", "memory_gib_hour", "gpu_hour")
_RULE: Mapping[str, Callable[[Any], object]] = {
    "namespace": _text,
    "cluster": _text,
    "labels": _texts,
    "instance_type": _text,
    "node_hour": _amount,
    "cpu_hour": _amount,
    "memory_gib_hour": _amount,
    "gpu_hour": _gpu_amounts,
}


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _is_gpu(pattern: str, name: str) -> bool:
    wanted, found = pattern.lower(), name.lower()
    return fnmatchcase(found, wanted) if "*" in wanted or "?" in wanted else wanted in found

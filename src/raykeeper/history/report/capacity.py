"""What tasks asked for, what nodes had, and what was ever given. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

Resources = Mapping[str, float]


def parse_resources(text: str | None) -> Resources:
    """From Ray's JSON; empty where there is none that can be read."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, float])
    except msgspec.DecodeError:
        return {}


def in_words(resources: Resources) -> str:
    """As people say them: `CPU 1, GPU 4`."""
    return ", ".join(f"{name} {number:g}" for name, number in resources.items())


@dataclass(frozen=True)
class Capacity:
    """What a session had for its tasks."""

    nodes: tuple[Resources, ...] = ()
    """What each node had in all; none where nothing is known of nodes."""
    given: frozenset[frozenset[tuple[str, float]]] = frozenset()
    """What attempts that ran had asked for."""

    def was_given(self, wanted: Resources) -> bool:
        """Whether something ran that had asked for the same: then it was a matter of time."""
        return frozenset(wanted.items()) in self.given

    def shortage(self, wanted: Resources) -> str:
        """What no node had enough of, in words; empty where one had all of it, or nothing is known of nodes."""
        if not self.nodes or any(_has(node, wanted) for node in self.nodes):
            return ""
        most = {name: max(node.get(name, 0.0) for node in self.nodes) for name in wanted}
        short = {name: number for name, number in wanted.items() if most[name] < number} or wanted
        had = in_words({name: most[name] for name in short})
        return f"no node had {in_words(short)}: the most that one had was {had}"


def capacity_of(nodes: Iterable[str], given: Iterable[str | None]) -> Capacity:
    """From Ray's JSON of each."""
    kinds = frozenset(frozenset(parse_resources(text).items()) for text in given)
    return Capacity(tuple(parse_resources(text) for text in nodes), kinds)


def _has(node: Resources, wanted: Resources) -> bool:
    return all(node.get(name, 0.0) >= number for name, number in wanted.items())

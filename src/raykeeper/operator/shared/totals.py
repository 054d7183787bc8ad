"""How much a number of pods asks for in all: for the status of any owner, and for schedulers that reserve it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import containers
from raykeeper.api.quantity import InvalidQuantity, Quantity, parse_quantity


def requested(pods: Iterable[tuple[JSON, int]]) -> dict[str, Quantity]:
    """The sum of each resource over pod templates, each so many times: the requests, else the limits."""
    sums: dict[str, Quantity] = {}
    for template, count in pods:
        for name, each in _requested_by_pod(template):
            sums[name] = sums.get(name, Quantity()) + each * count
    return sums


def _requested_by_pod(template: JSON) -> Iterator[tuple[str, Quantity]]:
    for container in containers(template):
        resources = container.get("resources") or {}
        stated = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name in stated:
            yield name, amount(stated, name)


def amount(resources: Mapping[str, str | int | float] | None, name: str) -> Quantity:
    """How much of a resource is asked for; what is missing, or no quantity, is nothing. The API server refuses pods
    with the latter by name, so it need not be told here.
    """
    try:
        return parse_quantity((resources or {}).get(name, 0))
    except InvalidQuantity:
        return Quantity()

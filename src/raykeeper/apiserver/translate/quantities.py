"""Amounts: quantities of Kubernetes, and floats of 32 bits."""

from __future__ import annotations

import math
import struct

from raykeeper.api.quantity import InvalidQuantity, parse_quantity
from raykeeper.apiserver.errors import Untranslatable

_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
"""What Kubernetes says of any text that is none."""


def check_amount(text: str, problem: str, *, is_told_why: bool = True) -> None:
    """Raise `Untranslatable` with the problem unless the text is a quantity."""
    try:
        parse_quantity(text)
    except InvalidQuantity as exc:
        raise Untranslatable(f"{problem}: {_NO_QUANTITY}" if is_told_why else problem) from exc


def canonical(quantity: str | int | float) -> str:
    """A quantity as Kubernetes writes it, so that 1024Mi is 1Gi; empty where there is none."""
    if quantity == "":
        return ""
    try:
        return str(parse_quantity(quantity))
    except InvalidQuantity:
        return str(quantity)


def shortest_float(value: float) -> float:
    """The shortest decimal that is this 32-bit number: as a double it has digits that nobody gave."""
    if not math.isfinite(value):
        return value
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", value):
            return short
    return float(f"{value:.9g}")

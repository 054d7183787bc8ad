"""Kubernetes quantities: exact numbers with the suffixes, rounding and canonical spelling of the API server.

Needed where the value counts, not the spelling: what `ray start` is told about a container, and the sums in a status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Final

NANO: Final = 10**9  # the finest step Kubernetes keeps; anything finer is rounded away from zero
MAX_VALUE: Final = 2**63 - 1  # larger amounts are cut to this, as in Kubernetes

BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
"""Suffix to power of two."""
DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""Suffix to power of ten. An "E" followed by digits is an exponent instead."""

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?))",
    re.ASCII,
)
# Both bound the arithmetic. Digits that fit the length cannot outweigh the exponent: beyond the limit an amount is cut
# to MAX_VALUE or rounded to one nano anyway.
_LENGTH_LIMIT: Final = 256
_EXPONENT_LIMIT: Final = 1000


class Format(Enum):
    """How a quantity was written, which is how its canonical form is written."""

    BINARY = "BinarySI"
    DECIMAL = "DecimalSI"
    EXPONENT = "DecimalExponent"


class InvalidQuantity(ValueError):
    """The text is not a quantity."""


@dataclass(frozen=True)
class Quantity:
    """An exact amount, in billionths."""

    nano: int = 0
    format: Format = Format.DECIMAL

    def value(self) -> int:
        """The whole number at or beyond this amount, away from zero."""
        return _divide_away_from_zero(self.nano, NANO)

    def milli_value(self) -> int:
        """The number of thousandths at or beyond this amount, away from zero."""
        return _divide_away_from_zero(self.nano, NANO // 1000)

    def is_zero(self) -> bool:
        return self.nano == 0

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in the format of the first amount that is not zero."""
        return Quantity(self.nano + other.nano, other.format if self.is_zero() else self.format)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nano * times, self.format)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __str__(self) -> str:
        """The canonical form: no fraction, the largest suffix that allows it."""
        if self.is_zero():
            return "0"
        if self.format is Format.BINARY and abs(self.nano) >= 1024 * NANO and self.nano % NANO == 0:
            return _binary_string(self.nano // NANO)
        return _decimal_string(self.nano, exponent_form=self.format is Format.EXPONENT)


def parse_quantity(text: str | int | float) -> Quantity:
    """The amount that the text says; JSON numbers are quantities too. Raises InvalidQuantity."""
    return _parse(str(text).strip())


@lru_cache(maxsize=1024)  # clusters ask for the same few amounts again and again
def _parse(spelling: str) -> Quantity:
    match = _QUANTITY.fullmatch(spelling)
    if match is None or len(spelling) > _LENGTH_LIMIT:
        raise InvalidQuantity(f"{spelling[:_LENGTH_LIMIT]!r} is not a quantity such as 500m, 2 or 4Gi")
    factor, written = _factor(match["exponent"], match["suffix"] or "")
    number = match["number"]
    amount = Fraction(number + "0" if number.endswith(".") else number) * factor * NANO
    nano = _divide_away_from_zero(amount.numerator, amount.denominator)
    return Quantity(max(-MAX_VALUE * NANO, min(nano, MAX_VALUE * NANO)), written)


def _factor(exponent: str | None, suffix: str) -> tuple[Fraction, Format]:
    if exponent is not None:
        return _power_of_ten(max(-_EXPONENT_LIMIT, min(int(exponent), _EXPONENT_LIMIT))), Format.EXPONENT
    if suffix in BINARY_SUFFIXES:
        return Fraction(2 ** BINARY_SUFFIXES[suffix]), Format.BINARY
    return _power_of_ten(DECIMAL_SUFFIXES[suffix]), Format.DECIMAL


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


def _divide_away_from_zero(numerator: int, denominator: int) -> int:
    quotient = -(-abs(numerator) // denominator)
    return quotient if numerator >= 0 else -quotient


def _binary_string(amount: int) -> str:
    suffixes = ["", *BINARY_SUFFIXES]
    steps = 0
    while amount % 1024 == 0 and steps < len(suffixes) - 1:
        amount //= 1024
        steps += 1
    return f"{amount}{suffixes[steps]}"


def _decimal_string(nano: int, *, exponent_form: bool) -> str:
    spelling = {power: suffix for suffix, power in DECIMAL_SUFFIXES.items()}
    power = -9
    while nano % 1000 == 0 and power + 3 in spelling:
        nano //= 1000
        power += 3
    if exponent_form:
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{spelling[power]}"

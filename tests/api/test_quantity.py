"""Quantities mean and print what Kubernetes makes of them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.api.quantity import (
    BINARY_SUFFIXES,
    DECIMAL_SUFFIXES,
    MAX_VALUE,
    InvalidQuantity,
    Quantity,
    parse_quantity,
)

suffixes = st.sampled_from([*BINARY_SUFFIXES, *DECIMAL_SUFFIXES])
amounts = st.builds(Quantity, st.integers(-MAX_VALUE, MAX_VALUE))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+3", 3),
        ("-3", -3),
        ("1.", 1),
        (".5", 1),
        ("0.1", 1),
        ("-0.1", -1),
        ("500m", 1),
        ("1500m", 2),
        ("2000m", 2),
        ("1u", 1),
        ("1n", 1),
        ("2k", 2000),
        ("3M", 3_000_000),
        ("4G", 4 * 10**9),
        ("5T", 5 * 10**12),
        ("6P", 6 * 10**15),
        ("7E", 7 * 10**18),
        ("1Ki", 1024),
        ("5Gi", 5 * 2**30),
        ("1.5Gi", 3 * 2**29),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12e-1", 2),
        ("1e+2", 100),
        ("100E", MAX_VALUE),
        ("1e400", MAX_VALUE),
        ("-1e99999", -MAX_VALUE),
        (2, 2),
        (0.5, 1),
        (1e-07, 1),
        (" 4 ", 4),
    ],
)
def test_a_quantity_rounds_up_to_a_whole_number(text: str | float, value: int) -> None:
    assert parse_quantity(text).value() == value


@pytest.mark.parametrize(("text", "milli"), [("1", 1000), ("500m", 500), ("100u", 1), ("1.0001", 1001), ("-1u", -1)])
def test_a_quantity_rounds_up_to_thousandths(text: str, milli: int) -> None:
    assert parse_quantity(text).milli_value() == milli


@pytest.mark.parametrize(
    "text",
    ["", "-", ".", "1K", "1ki", "Gi", "1 Gi", "1GiB", "0x10", "1e", "1e1.5", "\N{ARABIC-INDIC DIGIT ONE}", "1" * 300],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuantity, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.1", "100m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1.0001Ki", "1024102400u"),
        ("1e3", "1e3"),
        ("100e-1", "10"),
        ("1e-9", "1e-9"),
        ("0.1n", "1n"),
        ("-2Gi", "-2Gi"),
    ],
)
def test_the_canonical_form_has_no_fraction_and_the_largest_suffix(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


def test_a_sum_is_written_as_its_first_part_that_is_not_zero() -> None:
    assert str(parse_quantity("0") + parse_quantity("512Mi") + parse_quantity("0.5Gi")) == "1Gi"
    assert str(parse_quantity("500m") * 3 + parse_quantity("1Ki")) == "1025500m"


@given(st.integers(-(10**15), 10**15), suffixes)
def test_a_whole_number_with_a_suffix_is_exact(number: int, suffix: str) -> None:
    factor = (
        Fraction(2) ** BINARY_SUFFIXES[suffix]
        if suffix in BINARY_SUFFIXES
        else Fraction(10) ** DECIMAL_SUFFIXES[suffix]
    )
    exact = number * factor
    limited = max(-MAX_VALUE, min(exact, Fraction(MAX_VALUE)))
    assert Fraction(parse_quantity(f"{number}{suffix}").nano, 10**9) == limited


@given(amounts)
def test_the_canonical_form_says_the_same_amount(amount: Quantity) -> None:
    assert parse_quantity(str(amount)).nano == amount.nano


@given(st.integers(0, 2**62), suffixes)
def test_canonicalizing_twice_changes_nothing(number: int, suffix: str) -> None:
    once = str(parse_quantity(f"{number}{suffix}"))
    assert str(parse_quantity(once)) == once


@given(amounts)
def test_rounding_never_loses_and_never_adds_a_whole_unit(amount: Quantity) -> None:
    assert 0 <= abs(amount.value()) * 10**9 - abs(amount.nano) < 10**9


@given(amounts, amounts)
def test_order_follows_the_amount(one: Quantity, other: Quantity) -> None:
    assert (one < other) == (one.nano < other.nano)

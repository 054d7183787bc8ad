"""Values are written as KubeRay's users write them, and one that cannot be meant is refused."""

from __future__ import annotations

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.settings.values import parse_duration, parse_mebibytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("5m", 300.0),
        ("1m30s", 90.0),
        ("2h45m0.5s", 9900.5),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("250ms", 0.25),
        ("+4s", 4.0),
        ("7us", 7e-6),
        ("7µs", 7e-6),
        ("7μs", 7e-6),
        ("8ns", 8e-9),
    ],
)
def test_a_duration_is_written_as_in_go(text: str, seconds: float) -> None:
    assert parse_duration("--every", text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "30", "0", "0s", "-5s", "5 m", "s", ".s", "5d", "1e3s", "5m 30s", "nan", "٣s", "9" * 400 + "h"]
)
def test_what_is_no_duration_above_zero_is_refused_by_name(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"--every=.* cannot be used: use a duration above 0"):
        parse_duration("--every", text)


def test_megabytes_are_those_of_kuberay_two_to_the_twentieth() -> None:
    assert parse_mebibytes("--size", "3") == 3 * 1024 * 1024


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "10Mi"])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"--size=.* cannot be used: use a whole number"):
        parse_mebibytes("--size", text)

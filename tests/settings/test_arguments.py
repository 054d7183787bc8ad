"""The command line is read as Go reads it, because existing Deployments were written for that."""

from __future__ import annotations

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.settings.arguments import asks_for_help, parse_arguments, parse_values
from raykeeper.settings.flags import Flag
from raykeeper.settings.values import parse_decimal, parse_duration, parse_integer, parse_switch

FLAGS = (
    Flag("qps", "Requests per second.", parse=parse_decimal),
    Flag("burst", "Requests at once.", parse=parse_integer),
    Flag("enable-metrics", "Serve metrics.", parse=parse_switch),
    Flag("watch-namespace", "Namespaces."),
    Flag("config", "A file."),
    Flag("poll-interval", "Between two looks.", parse=parse_duration),
)


@pytest.mark.parametrize(
    "arguments", [["-qps", "50"], ["--qps", "50"], ["-qps=50"], ["--qps=50"], ["--qps=1", "--qps=50"]], ids=str
)
def test_a_flag_is_read_in_each_of_gos_spellings(arguments: list[str]) -> None:
    assert parse_arguments(FLAGS, arguments) == {"qps": "50"}


@pytest.mark.parametrize(
    ("text", "value"),
    [(text, True) for text in ("1", "t", "T", "true", "TRUE", "True")]
    + [(text, False) for text in ("0", "f", "F", "false", "FALSE", "False")],
)
def test_a_switch_takes_gos_booleans(text: str, value: bool) -> None:
    given = parse_arguments(FLAGS, [f"--enable-metrics={text}"])
    assert parse_values(FLAGS, given) == {"enable-metrics": value}


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_a_switch_without_a_value_is_on_and_leaves_the_next_argument_alone(dashes: str) -> None:
    arguments = [f"{dashes}enable-metrics", "--qps", "5"]
    assert parse_arguments(FLAGS, arguments) == {"enable-metrics": "true", "qps": "5"}


def test_a_value_may_look_like_a_flag() -> None:
    assert parse_arguments(FLAGS, ["--watch-namespace", "--qps"]) == {"watch-namespace": "--qps"}


def test_a_value_may_hold_equals_signs_and_be_empty() -> None:
    arguments = ["--watch-namespace=A=true,B=false", "--config="]
    assert parse_arguments(FLAGS, arguments) == {"watch-namespace": "A=true,B=false", "config": ""}


def test_the_empty_argument_that_kuberays_chart_adds_without_gates_is_skipped() -> None:
    assert parse_arguments(FLAGS, ["--qps=5", "", "--burst=6"]) == {"qps": "5", "burst": "6"}


@pytest.mark.parametrize(
    ("argument", "culprit"),
    [
        ("--qsp=5", "flag='--qsp' cannot be used: there is no such flag; did you mean --qps?"),
        ("--nothing-like-it", "flag='--nothing-like-it' cannot be used: there is no such flag; --help lists all"),
        ("--burst", "flag='--burst' cannot be used: it needs a value"),
        ("false", "argument='false' cannot be used: it is no flag"),
        ("-", "argument='-' cannot be used: it is no flag"),
        ("--", "argument='--' cannot be used: it is no flag"),
        ("---qps=5", "argument='---qps=5' cannot be used: it is no flag"),
        ("--=5", "argument='--=5' cannot be used: it is no flag"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(argument: str, culprit: str) -> None:
    with pytest.raises(Misconfigured) as refusal:
        parse_arguments(FLAGS, [argument])
    assert str(refusal.value).startswith(culprit)


@pytest.mark.parametrize(
    ("argument", "cure"),
    [
        ("--qps=fast", "use a number"),
        ("--qps=nan", "use a number"),
        ("--burst=1.5", "use a whole number"),
        ("--burst=", "use a whole number"),
        ("--enable-metrics=yes", "use true or false"),
        ("--poll-interval=30", "use a duration above 0, such as 30s, 5m or 1m30s"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_flag(argument: str, cure: str) -> None:
    name, _, value = argument.partition("=")
    with pytest.raises(Misconfigured) as refusal:
        parse_values(FLAGS, parse_arguments(FLAGS, [argument]))
    assert str(refusal.value) == f"{name}={value!r} cannot be used: {cure}"


def test_whole_numbers_may_be_written_as_in_go() -> None:
    assert parse_values(FLAGS, {"burst": "0x10"}) == {"burst": 16}


@pytest.mark.parametrize("argument", ["-h", "--h", "-help", "--help"])
def test_help_is_asked_for_as_in_go(argument: str) -> None:
    assert asks_for_help(["--qps=5", argument])

"""The command line is read as Go reads it, because existing Deployments were written for that."""

from __future__ import annotations

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.operator.arguments import asks_for_help, parse_arguments, parse_values
from raykeeper.operator.flags import FLAGS, Flag


@pytest.mark.parametrize(
    "arguments", [["-qps", "50"], ["--qps", "50"], ["-qps=50"], ["--qps=50"], ["--qps=1", "--qps=50"]], ids=str
)
def test_a_flag_is_read_in_each_of_gos_spellings(arguments: list[str]) -> None:
    assert parse_arguments(arguments) == {"qps": "50"}


@pytest.mark.parametrize(
    ("text", "value"),
    [(text, True) for text in ("1", "t", "T", "true", "TRUE", "True")]
    + [(text, False) for text in ("0", "f", "F", "false", "FALSE", "False")],
)
def test_a_switch_takes_gos_booleans(text: str, value: bool) -> None:
    assert parse_values(parse_arguments([f"--enable-metrics={text}"])) == {"enable-metrics": value}


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_a_switch_without_a_value_is_on_and_leaves_the_next_argument_alone(dashes: str) -> None:
    arguments = [f"{dashes}enable-leader-election", "--qps", "5"]
    assert parse_arguments(arguments) == {"enable-leader-election": "true", "qps": "5"}


def test_a_value_may_look_like_a_flag() -> None:
    assert parse_arguments(["--watch-namespace", "--qps"]) == {"watch-namespace": "--qps"}


def test_a_value_may_hold_equals_signs_and_be_empty() -> None:
    assert parse_arguments(["--feature-gates=A=true,B=false", "--config="]) == {
        "feature-gates": "A=true,B=false",
        "config": "",
    }


def test_the_empty_argument_that_kuberays_chart_adds_without_gates_is_skipped() -> None:
    assert parse_arguments(["--qps=5", "", "--burst=6"]) == {"qps": "5", "burst": "6"}


def test_what_kuberays_chart_renders_in_flag_mode_is_understood() -> None:
    rendered = [
        "--watch-namespace", "team-a,team-b", "--log-file-path", "/logs/operator.log", "--log-stdout-encoder", "json",
        "--log-file-encoder", "json", "--use-kubernetes-proxy=false", "--enable-leader-election=true",
        "--enable-metrics=true", "--reconcile-concurrency=1", "--qps=100", "--burst=200", "--feature-gates=A=true",
    ]  # fmt: skip
    assert len(parse_arguments(rendered)) == 11


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
        parse_arguments([argument])
    assert str(refusal.value).startswith(culprit)


@pytest.mark.parametrize(
    ("argument", "cure"),
    [
        ("--qps=fast", "use a number"),
        ("--qps=nan", "use a number"),
        ("--burst=1.5", "use a whole number"),
        ("--reconcile-concurrency=", "use a whole number"),
        ("--enable-metrics=yes", "use true or false"),
        ("--forced-cluster-upgrade=maybe", "use true or false"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_flag(argument: str, cure: str) -> None:
    name, _, value = argument.partition("=")
    with pytest.raises(Misconfigured) as refusal:
        parse_values(parse_arguments([argument]))
    assert str(refusal.value) == f"{name}={value!r} cannot be used: {cure}"


def test_whole_numbers_may_be_written_as_in_go() -> None:
    assert parse_values({"burst": "0x10"}) == {"burst": 16}


@pytest.mark.parametrize("argument", ["-h", "--h", "-help", "--help"])
def test_help_is_asked_for_as_in_go(argument: str) -> None:
    assert asks_for_help(["--qps=5", argument])


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_is_documented_with_a_default_it_accepts(flag: Flag) -> None:
    assert flag.help.endswith(".")
    assert flag.default == "" or flag.parse(flag.spelling, flag.default) is not None

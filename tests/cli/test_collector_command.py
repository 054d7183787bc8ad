"""`raykeeper collector` from outside: its help, what ends it at once, and what it says before it starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from raykeeper.cli.app import app
from raykeeper.cli.main import to_arguments
from raykeeper.collector.environment import VARIABLES
from raykeeper.collector.flags import FLAGS
from raykeeper.collector.main import run
from raykeeper.collector.settings import CollectorSettings

COMMAND = (sys.executable, "-m", "raykeeper.cli.main", "collector")
SHOW_HELP = """
import sys
from raykeeper.cli.app import app
app(["collector", "--help"], prog_name="raykeeper", standalone_mode=False)
print(*sys.modules)
"""
ENOUGH = ("--ray-cluster-name=demo", "--store-url=file:///history")


@pytest.mark.parametrize("argument", ["-h", "-help", "--help"])
def test_the_help_tells_every_flag_and_variable(argument: str) -> None:
    outcome = CliRunner().invoke(app, ["collector", argument], terminal_width=200)
    assert outcome.exit_code == 0
    words = {word.strip(".,:") for word in outcome.output.split()}
    assert {flag.spelling for flag in FLAGS} <= words
    assert VARIABLES.keys() <= words
    assert "--once --ray-cluster-name=demo" in outcome.output


def test_the_help_does_not_wait_for_the_program() -> None:
    output = subprocess.run([sys.executable, "-c", SHOW_HELP], capture_output=True, text=True, check=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert not {"msgspec", "aiohttp", "asyncio", "opendal", "raykeeper.collector.settings"} & loaded


@pytest.mark.parametrize(
    "argv", [["/collector", "--once"], ["collector", "--once"], ["raykeeper", "collector", "--once"]]
)
def test_it_is_called_as_kuberays_program_or_as_a_command(argv: list[str]) -> None:
    assert to_arguments(argv) == ["collector", "--once"]


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        ((), {}, "--ray-cluster-name='' cannot be used: name the cluster"),
        (("--ray-cluster-name=demo",), {}, "--storage-backend='' cannot be used: say where the history goes"),
        ((*ENOUGH, "--seal-age=soon"), {}, "--seal-age='soon' cannot be used: use a duration above 0"),
        ((*ENOUGH, "--no-such-flag"), {}, "flag='--no-such-flag' cannot be used: there is no such flag"),
        ((*ENOUGH, "--once", "false"), {}, "argument='false' cannot be used: it is no flag"),
        (ENOUGH, {"EVENTS_PORT": "x"}, "EVENTS_PORT='x' cannot be used: use a whole number"),
        ((*ENOUGH, "--log-file-path=/no/such/folder/log"), {}, "log file path='/no/such/folder/log' cannot be used"),
    ],
)
def test_what_cannot_be_used_ends_it_with_2_and_one_line(
    arguments: tuple[str, ...], variables: dict[str, str], complaint: str
) -> None:
    outcome = subprocess.run(
        [*COMMAND, *arguments], env=variables, capture_output=True, text=True, check=False, timeout=60
    )
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"raykeeper: {complaint}")
    assert outcome.stderr.count("\n") == 1


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[CollectorSettings]:
    """What the program was started with; it ends at once with 7."""
    settings: list[CollectorSettings] = []

    def serve(given: CollectorSettings, _environment: Mapping[str, str]) -> int:
        settings.append(given)
        return 7

    monkeypatch.setitem(sys.modules, "raykeeper.collector.program", SimpleNamespace(serve=serve))
    monkeypatch.setattr("raykeeper.collector.main.set_up_logs", lambda _: None)
    return settings


def test_the_program_gets_the_settings_and_its_exit_code_counts(served: list[CollectorSettings]) -> None:
    assert run(ENOUGH, {}) == 7
    assert [settings.cluster.name for settings in served] == ["demo"]


def test_settings_without_effect_are_told_in_one_warning(
    served: list[CollectorSettings], caplog: pytest.LogCaptureFixture
) -> None:
    run([*ENOUGH, "--log-batching=5", "--push-interval=1m"], {})
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("WARNING", "settings without effect")
    assert line.__dict__["raykeeper_fields"] == {"settings": ("--log-batching", "--push-interval")}


def test_nothing_is_warned_of_when_everything_counts(
    served: list[CollectorSettings], caplog: pytest.LogCaptureFixture
) -> None:
    run(ENOUGH, {})
    assert not caplog.records

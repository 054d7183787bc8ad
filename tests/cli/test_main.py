"""The command line is quick, quiet and honest."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest
import typer
from typer.testing import CliRunner

from raykeeper.cli import app as commands
from raykeeper.cli import main as cli
from raykeeper.cli.programs import PROGRAMS
from raykeeper.errors import Misconfigured, Unavailable

HEAVY = {"aiohttp", "kubernetes", "msgspec", "prometheus_client", "rich", "yaml", "asyncio"}


SHOW_HELP = """
import sys
from raykeeper.cli.app import app
app(["--help"], prog_name="raykeeper", standalone_mode=False)
print(*sys.modules)
"""


def test_help_imports_nothing_heavy() -> None:
    output = subprocess.run([sys.executable, "-c", SHOW_HELP], capture_output=True, text=True, check=True).stdout
    assert "Usage: raykeeper" in output
    assert not HEAVY & set(output.splitlines()[-1].split())


def test_help_lists_only_programs_that_are_there() -> None:
    listed = CliRunner().invoke(commands.app, ["--help"]).output.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.strip().splitlines()] == [
        "operator",
        "collector",
        "history",
        "historyserver",
        "submitter",
        "report",
        "demo",
        "crds",
        "charts",
        "import",
        "delete",
        "version",
    ]


def test_the_version_is_that_of_the_distribution() -> None:
    assert CliRunner().invoke(commands.app, ["version", "--short"]).output == f"{metadata.version('raykeeper')}\n"


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (Misconfigured("--qps", "fast", "use a number"), "raykeeper: --qps='fast' cannot be used: use a number\n", 2),
        (Unavailable("bucket", "gone"), "raykeeper: bucket: gone\n", 1),
    ],
)
def test_an_error_of_ours_is_one_line_and_an_exit_code(
    error: Exception, line: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.command()
    def fail() -> None:
        raise error

    monkeypatch.setattr(commands, "app", lambda _: app([], standalone_mode=False))
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == code
    assert capsys.readouterr().err == line


def test_a_program_that_is_interrupted_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(PROGRAMS, "collector", interrupted)
    monkeypatch.setattr(sys, "argv", ["raykeeper", "collector", "--once"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert (exit_.value.code, capsys.readouterr().err) == (130, "raykeeper: interrupted\n")


START_WITH_WRONG_FLAG = """
import sys
from raykeeper.cli.main import run_command
from raykeeper.errors import Misconfigured
try:
    run_command([sys.argv[1], "--no-such-flag"])
except Misconfigured:
    print(*sys.modules)
"""


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_program_starts_without_what_the_other_commands_need(command: str) -> None:
    script = [sys.executable, "-c", START_WITH_WRONG_FLAG, command]
    loaded = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    assert f"raykeeper.{command.removesuffix('server')}.settings" in loaded
    assert not {"typer", "pydantic", "rich"} & set(loaded)

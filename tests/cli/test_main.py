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


START = """
import gc
looks = []
gc.callbacks.append(lambda phase, info: looks.append(phase))
from raykeeper.cli.programs import importing
looks.clear()
with importing():
    import raykeeper.operator.main
print(len(looks), gc.get_freeze_count() > 10_000, gc.isenabled())
"""


def test_the_modules_of_a_program_are_not_searched_for_garbage() -> None:
    output = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["0", "True", "True"]


def test_help_has_every_command_in_one_group_and_none_that_is_not_there() -> None:
    listed = [name for names in commands.GROUPS.values() for name in names]
    assert sorted(listed) == sorted(typer.main.get_command(commands.app).commands)  # type: ignore[attr-defined]
    shown = CliRunner().invoke(commands.app, ["--help"]).output
    places = [shown.index(f"\n  {name} ") for name in listed]
    assert places == sorted(places)
    assert all(f"\n{title}:\n" in shown for title in commands.GROUPS)
    assert "..." not in shown.partition("\n")[2]


@pytest.mark.parametrize("command", [[], ["report"], ["jobs"], ["history"], ["version"]])
def test_h_shows_what_help_shows(command: list[str]) -> None:
    short, long = (CliRunner().invoke(commands.app, [*command, flag]) for flag in ("-h", "--help"))
    assert (short.exit_code, short.output) == (0, long.output)
    assert "Usage: raykeeper" in short.output


def test_version_is_also_an_option() -> None:
    option, command = (CliRunner().invoke(commands.app, [word]) for word in ("--version", "version"))
    assert (option.exit_code, option.output) == (0, command.output)


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


FOLDERS = {"historyserver": "history", "kuberay-apiserver": "apiserver", "security-proxy": "securityproxy"}
"""Of programs that are called otherwise."""


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_program_starts_without_what_the_other_commands_need(command: str) -> None:
    script = [sys.executable, "-c", START_WITH_WRONG_FLAG, command]
    loaded = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    assert f"raykeeper.{FOLDERS.get(command, command)}.settings" in loaded
    assert not {"typer", "pydantic", "rich"} & set(loaded)


HELP_UNDER_ITS_OWN_NAME = """
import sys
from raykeeper.cli.main import main
sys.argv = ["/usr/local/bin/{name}", "--help"]
try:
    main()
finally:
    print(*(module for module in sys.modules if module.count(".") == 1))
"""


@pytest.mark.parametrize(("name", "folder"), [("manager", "operator"), ("collector", "collector")])
def test_the_help_of_a_program_under_kuberays_name_needs_no_other_program(name: str, folder: str) -> None:
    command = [sys.executable, "-c", HELP_UNDER_ITS_OWN_NAME.format(name=name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Usage: {name} [OPTIONS]\n")
    imported = set(done.stdout.splitlines()[-1].split())
    programs = {f"raykeeper.{each}" for each in ("operator", "collector", "history", "submitter", "demo")}
    assert imported & programs == {f"raykeeper.{folder}"}

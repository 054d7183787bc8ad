"""The `raykeeper` command, from the words on the command line to an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import PurePath

from raykeeper.cli.programs import PROGRAMS
from raykeeper.errors import RaykeeperError
from raykeeper.settings.arguments import asks_for_help

COMMAND_OF_PROGRAM = {
    "manager": "operator",
    "collector": "collector",
    "historyserver": "historyserver",
    "kuberay-apiserver": "kuberay-apiserver",
    "submitter": "submitter",
}
"""Names of KubeRay's programs, under which existing manifests start ours."""

ALONE = {"manager": "operator", "collector": "collector", "submitter": "submitter"}
"""Programs that have a module of commands for themselves."""

PLUGIN = "kubectl-raykeeper"
"""A program of its own, with commands of its own, for kubectl; the image starts all programs here."""

INTERRUPTED = 130
"""Exit code, as a shell says of Ctrl-C."""


def to_arguments(argv: Sequence[str]) -> list[str]:
    """What stands after the program's name; under a name of KubeRay's, the command comes first."""
    command = COMMAND_OF_PROGRAM.get(PurePath(argv[0]).name)
    return [command, *argv[1:]] if command else list(argv[1:])


def run_command(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code.

    A program goes without typer, which reads none of its flags but costs 11 MB and more, and much of its start.
    """
    command, *rest = arguments or [""]
    if command in PROGRAMS and not asks_for_help(rest):
        return PROGRAMS[command](rest)
    from raykeeper.cli.app import app

    app(list(arguments))
    return 0


def show_help(program: str) -> None:
    """The help of a program under KubeRay's name. Nothing of other programs is imported: an image may lack them."""
    import typer

    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    importlib.import_module(f"raykeeper.cli.{ALONE[program]}").register(alone)
    alone(["--help"], prog_name=program)


def main() -> None:
    """Entry point: an error of ours, or Ctrl-C, is one line on stderr, never a traceback."""
    program = PurePath(sys.argv[0]).name
    if program == PLUGIN:
        from raykeeper.cli.kubectl import run_command as run_plugin

        sys.exit(run_plugin(sys.argv[1:]))
    try:
        if program in ALONE and asks_for_help(sys.argv[1:]):
            show_help(program)
        sys.exit(run_command(to_arguments(sys.argv)))
    except RaykeeperError as exc:
        print(f"raykeeper: {exc}", file=sys.stderr)  # noqa: T201 - there may be no log yet
        sys.exit(exc.exit_code)
    except KeyboardInterrupt:
        print("raykeeper: interrupted", file=sys.stderr)  # noqa: T201 - for the person who did it
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

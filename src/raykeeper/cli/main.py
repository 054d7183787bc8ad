"""The `raykeeper` command. Each program is imported when it is asked for: `--help` must not pay for any of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, NoReturn

import typer

from raykeeper.cli import collector, crds, deleting, demo, history, importing, operator, report
from raykeeper.errors import Misconfigured, RaykeeperError
from raykeeper.settings.arguments import asks_for_help

# Plain help text: rich would double the time of `--help`.
app = typer.Typer(
    name="raykeeper",
    help="Ray on Kubernetes that remembers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
operator.register(app)
collector.register(app)
history.register(app)
report.register(app)
demo.register(app)
crds.register(app)
importing.register(app)
deleting.register(app)

COMMAND_OF_PROGRAM = {"manager": "operator", "collector": "collector", "historyserver": "historyserver"}
"""Names of KubeRay's programs, under which existing manifests start ours."""


@app.callback()
def raykeeper() -> None:
    """Ray on Kubernetes that remembers."""


@app.command()
def version(
    short: Annotated[bool, typer.Option("--short", help="Print the number alone.")] = False,
) -> None:
    """Print the version of raykeeper and of what it runs on."""
    import platform
    from importlib import metadata

    number = metadata.version("raykeeper")
    typer.echo(number if short else f"raykeeper {number} (Python {platform.python_version()}, {platform.system()})")


def to_arguments(argv: Sequence[str]) -> list[str]:
    """What stands after the program's name; under a name of KubeRay's, the command comes first."""
    command = COMMAND_OF_PROGRAM.get(PurePath(argv[0]).name)
    return [command, *argv[1:]] if command else list(argv[1:])


def is_collecting(arguments: Sequence[str]) -> bool:
    """Whether the collector is asked for, and not its help."""
    return arguments[:1] == ["collector"] and not asks_for_help(arguments[1:])


def run_collector(arguments: Sequence[str]) -> NoReturn:
    """The collector without typer, which would read no flag here but load pydantic: 10 MB, and half of its start."""
    from raykeeper.collector.main import run

    sys.exit(run(arguments))


def main() -> None:
    """Entry point: an error of ours is one line on stderr, never a traceback."""
    arguments = to_arguments(sys.argv)
    try:
        if is_collecting(arguments):
            run_collector(arguments[1:])
        app(arguments)
    except RaykeeperError as exc:
        typer.echo(f"raykeeper: {exc}", err=True)
        sys.exit(2 if isinstance(exc, Misconfigured) else 1)


if __name__ == "__main__":
    main()

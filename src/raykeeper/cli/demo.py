"""`raykeeper demo`: what raykeeper is for, on one machine and without Kubernetes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="Your own script after `--`, such as `-- python my.py`. Where not given: a job in which tasks fail."
        ),
    ] = None,
    exits: Annotated[
        bool, typer.Option("--exit", help="End once everything was shown, instead of serving it until Ctrl-C.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of the history. Default: `~/.local/share/raykeeper/demo`."),
    ] = None,
    ray_python: Annotated[
        Path | None,
        typer.Option(
            help="Python of an environment with ray[default]. Where not given: the one beside raykeeper, the active "
            "one, or one that is installed into the user's cache."
        ),
    ] = None,
) -> None:
    """Run a job on a Ray of its own, end that Ray, and show it as if it were still there. Needs no Kubernetes.

    The exit code is 0 if the history says what happened; with your own script it is that of the script.
    """
    from raykeeper.demo.run import run
    from raykeeper.demo.screen import Screen
    from raykeeper.demo.settings import DemoSettings, default_folder

    place = (folder or default_folder()).expanduser().absolute()
    settings = DemoSettings(place, ray_python, tuple(command or ()), exits)
    raise typer.Exit(run(settings, Screen()))

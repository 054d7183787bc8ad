"""`raykeeper login`: sign in to a history server from the terminal."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(login)


def login(
    server: Annotated[str, typer.Option(help="Address of the history server.")],
    seconds: Annotated[float, typer.Option(min=1, help="How long to wait for the browser.")] = 300.0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address alone.")] = False,
) -> None:
    """Sign in to a history server whose people sign in by OpenID Connect.

    `report`, `jobs`, `sessions` and `logs` then use the token for that `--server`, until it ends. It is kept in
    `~/.config/raykeeper/logins.json`, which only you can read.
    """
    import os
    import webbrowser

    from raykeeper.errors import RaykeeperError
    from raykeeper.history.commands.login import LoginCommand, run

    open_page = (lambda _: None) if no_browser else webbrowser.open
    try:
        run(LoginCommand(server, seconds), os.environ, open_page, lambda line: typer.echo(line, err=True))
    except (RaykeeperError, OSError) as exc:
        typer.echo(f"raykeeper: {exc}", err=True)
        raise typer.Exit(2) from exc

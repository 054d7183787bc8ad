"""`raykeeper open`: a page of the history server in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from raykeeper.cli.sources import TokenFile


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("open")(open_page)


def open_page(
    subject: Annotated[
        str,
        typer.Argument(
            help="What to look at: <namespace>/<cluster>/<session>[/<job>], or <namespace>/<RayJob>. The session may "
            "be `latest`. Default: the job that failed last."
        ),
    ] = "",
    server: Annotated[str, typer.Option(help="Address of the history server.")] = "http://127.0.0.1:8080",
    token_file: TokenFile = None,
    is_printed: Annotated[bool, typer.Option("--print", help="Print the address and open nothing.")] = False,
) -> None:
    """Open the page of a job, a session or a RayJob in the browser.

    The address is printed too, for a terminal that has no browser.
    """
    import os
    import webbrowser

    from raykeeper.history.commands.open import OpenCommand, page_address
    from raykeeper.history.commands.subjects import Source

    address = page_address(OpenCommand(subject, Source(server=server, token_file=token_file)), os.environ)
    typer.echo(address)
    if not is_printed:
        webbrowser.open(address)

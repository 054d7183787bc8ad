"""`raykeeper report`: why a job or a session failed, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raykeeper.cli.sources import CacheDir, Server, Store, Token, TokenFile


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    subject: Annotated[
        str,
        typer.Argument(
            help="What to report on: <namespace>/<cluster>/<session>[/<job>], or <namespace>/<RayJob>. The session may "
            "be `latest`; the job is an id, a submission's, or the name of a RayJob. Default: the job that failed last."
        ),
    ] = "",
    store: Store = "",
    server: Server = "",
    token: Token = "",
    token_file: TokenFile = None,
    cache_dir: CacheDir = None,
    full: Annotated[bool, typer.Option("--full", help="Everything: evidence, all causes, groups, examples.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a ticket or a chat.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report to FILE too, as one HTML page.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say why a job or a session failed: the error with its line, the lines that matter, and what followed.

    The exit code is 0 if nothing failed, 1 if something did or was stopped, 2 if there is no report.
    """
    import os

    from raykeeper.history.commands.report import NO_REPORT, Form, NoReport, ReportCommand, run
    from raykeeper.history.commands.report_text import ReportScreen
    from raykeeper.history.commands.subjects import Source

    form: Form = "json" if as_json else "markdown" if markdown else "text"
    command = ReportCommand(subject, Source(store, server, token_file, cache_dir, token), form, html, full)
    try:
        raise typer.Exit(run(command, os.environ, ReportScreen(), lambda line: typer.echo(line, err=True)))
    except NoReport as exc:
        typer.echo(f"raykeeper: {exc}", err=True)
        raise typer.Exit(NO_REPORT) from exc

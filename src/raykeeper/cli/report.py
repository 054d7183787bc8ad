"""`raykeeper report`: why a job or a session failed, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    subject: Annotated[
        str,
        typer.Argument(
            help="What to report on: <namespace>/<cluster>/<session>[/<job>], or <namespace>/<RayJob>. The session may "
            "be `latest`; the job is an id, a submission's, or the name of a RayJob."
        ),
    ],
    store: Annotated[
        str,
        typer.Option(
            envvar="RAYKEEPER_STORE_URL",
            help="Where the history is: s3://bucket/prefix, gs://, azblob://, oss:// or file:///folder.",
        ),
    ] = "",
    server: Annotated[str, typer.Option(help="Address of a history server to ask instead of a store.")] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token of that server. Default: RAYKEEPER_AUTH_TOKEN."),
    ] = None,
    cache_dir: Annotated[
        Path | None, typer.Option(help="Folder for copies of objects. Default: `~/.cache/raykeeper-history`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say why a job or a session failed: the root cause, the failures in groups, and what is unknown.

    The exit code is 0 if nothing failed, 1 if something did or was stopped, 2 if there is no report.
    """
    import os

    from raykeeper.history.commands.report import NO_REPORT, NoReport, ReportCommand, run
    from raykeeper.history.commands.report_text import ReportScreen

    command = ReportCommand(subject, store, server, token_file, cache_dir, as_json)
    try:
        raise typer.Exit(run(command, os.environ, ReportScreen()))
    except NoReport as exc:
        typer.echo(f"raykeeper: {exc}", err=True)
        raise typer.Exit(NO_REPORT) from exc

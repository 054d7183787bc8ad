"""`raykeeper history`, also as `historyserver`: KubeRay's command line. Only the flags are imported before it runs."""

from __future__ import annotations

import typer

from raykeeper.cli.goflags import GoFlagsCommand, paragraph, signature_of
from raykeeper.cli.programs import PROGRAMS
from raykeeper.history.environment import WITHOUT_FLAG
from raykeeper.history.flags import FLAGS

STORE = "The store's own variables are KubeRay's: S3_BUCKET, GCS_BUCKET, AZURE_STORAGE_CONTAINER, OSS_BUCKET and so on."
EXAMPLES = """\b
Examples:
  raykeeper history --store=file:///var/history
  raykeeper history --store=s3://bucket/prefix --bind=:8080 --auth=token --auth-token-file=/etc/token"""


def history(context: typer.Context, **_: object) -> None:
    """Show the sessions in a store: Ray's dashboard and API for clusters that run or are gone.

    A flag is written `-flag value`, `--flag=value` or `--flag`, and beats the variable that means the same.
    """
    raise typer.Exit(PROGRAMS["history"](context.args))


def historyserver(context: typer.Context, **_: object) -> None:
    """The same under KubeRay's name: listens at all addresses, as existing manifests expect, and warns about it."""
    raise typer.Exit(PROGRAMS["historyserver"](context.args))


for _command in (history, historyserver):
    _command.__signature__ = signature_of(FLAGS)  # type: ignore[attr-defined]  # mypy knows no such attribute


def _epilog() -> str:
    return "\n\n".join([paragraph("Further variables:", WITHOUT_FLAG), STORE, EXAMPLES])


def register(app: typer.Typer) -> None:
    """Add the command to the app under both names."""
    for command in (history, historyserver):
        app.command(cls=GoFlagsCommand, epilog=_epilog())(command)

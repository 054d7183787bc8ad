"""`raykeeper collector`: KubeRay's command line. Only the flags are imported before the program is asked for."""

from __future__ import annotations

import typer

from raykeeper.cli.goflags import GoFlagsCommand, paragraph, signature_of
from raykeeper.cli.programs import PROGRAMS
from raykeeper.collector.environment import WITHOUT_EFFECT, WITHOUT_FLAG
from raykeeper.collector.flags import FLAGS

STORE = "The store's own variables are KubeRay's: S3_BUCKET, GCS_BUCKET, AZURE_STORAGE_CONTAINER, OSS_BUCKET and so on."
EXAMPLES = """\b
Examples:
  collector --role=head --ray-cluster-name=demo --storage-backend=s3
  raykeeper collector --once --ray-cluster-name=demo --store-url=file:///var/history"""


def collector(context: typer.Context, **_: object) -> None:
    """Keep the events and logs of the Ray node beside it in a bucket. Takes the flags of KubeRay's collector.

    A flag is written `-flag value`, `--flag=value` or `--flag`, and beats the variable that means the same.
    """
    raise typer.Exit(PROGRAMS["collector"](context.args))


collector.__signature__ = signature_of(FLAGS)  # type: ignore[attr-defined]  # mypy knows no such attribute of functions


def _epilog() -> str:
    variables = paragraph("Further variables:", WITHOUT_FLAG | WITHOUT_EFFECT)
    return "\n\n".join([variables, STORE, EXAMPLES])


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command(cls=GoFlagsCommand, epilog=_epilog())(collector)

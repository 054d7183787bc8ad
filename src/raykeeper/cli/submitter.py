"""`raykeeper submitter`: the command line of KubeRay's submitter. Only its flags are imported for the help."""

from __future__ import annotations

import typer

from raykeeper.cli.goflags import GoFlagsCommand, paragraph, signature_of
from raykeeper.cli.programs import PROGRAMS
from raykeeper.submitter.flags import FLAGS, VARIABLES

EXAMPLE = """\b
Example:
  RAY_DASHBOARD_ADDRESS=head:8265 RAY_JOB_SUBMISSION_ID=mine submitter -- python job.py"""


def submitter(context: typer.Context, **_: object) -> None:
    """Give a job to Ray, once, and print its log to the end. The entrypoint stands behind the flags and `--`.

    It ends with 0 once the job has ended, whether that was a success or not.
    """
    raise typer.Exit(PROGRAMS["submitter"](context.args))


submitter.__signature__ = signature_of(FLAGS)  # type: ignore[attr-defined]  # mypy knows no such attribute of functions


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command(cls=GoFlagsCommand, epilog="\n\n".join([paragraph("Variables:", VARIABLES), EXAMPLE]))(submitter)

"""`raykeeper operator`: KubeRay's command line. Only the table of flags is imported before the program is asked for."""

from __future__ import annotations

import typer

from raykeeper.cli.goflags import GoFlagsCommand, paragraph, signature_of
from raykeeper.cli.programs import PROGRAMS
from raykeeper.operator.environment import VARIABLES
from raykeeper.operator.flags import FLAGS
from raykeeper.operator.gates import Gate


def operator(context: typer.Context, **_: object) -> None:
    """Reconcile RayClusters. Takes the flags of KubeRay's operator, as `-flag value`, `--flag=value` or `--flag`."""
    raise typer.Exit(PROGRAMS["operator"](context.args))


operator.__signature__ = signature_of(FLAGS)  # type: ignore[attr-defined]  # mypy knows no such attribute of functions


def _epilog() -> str:
    gates = {f"{gate.value.name}={str(gate.value.is_on).lower()}": gate.value.meaning for gate in Gate}
    return "\n\n".join([paragraph("Feature gates:", gates), paragraph("Variables:", VARIABLES)])


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command(cls=GoFlagsCommand, epilog=_epilog())(operator)

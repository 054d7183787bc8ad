"""`raykeeper security-proxy`: the token check beside the API server."""

from __future__ import annotations

import typer

from raykeeper.cli.goflags import GoFlagsCommand, paragraph, signature_of
from raykeeper.cli.programs import PROGRAMS
from raykeeper.securityproxy.environment import VARIABLES


def security_proxy(context: typer.Context, **_: object) -> None:
    """Pass requests on to an API server in the same pod, over HTTP and gRPC, if they show a token.

    The token stands in the header or metadata `authorization`, bare or after `Bearer`. All settings are variables.
    """
    raise typer.Exit(PROGRAMS["security-proxy"](context.args))


security_proxy.__signature__ = signature_of(())  # type: ignore[attr-defined]  # mypy knows no such attribute


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    epilog = paragraph("Variables:", VARIABLES)
    app.command(cls=GoFlagsCommand, name="security-proxy", epilog=epilog)(security_proxy)

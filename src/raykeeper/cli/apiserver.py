"""`raykeeper apiserver`, also as `kuberay-apiserver`: KubeRay's command line. Only the flags are imported before."""

from __future__ import annotations

import typer

from raykeeper.apiserver.environment import WITHOUT_FLAG
from raykeeper.apiserver.flags import FLAGS
from raykeeper.cli.goflags import GoFlagsCommand, paragraph, signature_of
from raykeeper.cli.programs import PROGRAMS

EXAMPLES = """\b
Examples:
  raykeeper apiserver
  raykeeper apiserver --httpPortFlag=:8888 --rpcPortFlag=:8887 --auth=kubernetes
  raykeeper apiserver --httpPortFlag=:8888 --auth=token --auth-token-file=/etc/tokens"""


def apiserver(context: typer.Context, **_: object) -> None:
    """Serve clusters, jobs, services and compute templates over gRPC and HTTP, as KubeRay's API server does.

    A flag is written `-flag value`, `--flag=value` or `--flag`, and beats the variable that means the same.
    """
    raise typer.Exit(PROGRAMS["apiserver"](context.args))


def kuberay_apiserver(context: typer.Context, **_: object) -> None:
    """The same under KubeRay's name: listens at all addresses, as existing manifests expect, and warns about it."""
    raise typer.Exit(PROGRAMS["kuberay-apiserver"](context.args))


for _command in (apiserver, kuberay_apiserver):
    _command.__signature__ = signature_of(FLAGS)  # type: ignore[attr-defined]  # mypy knows no such attribute


def register(app: typer.Typer) -> None:
    """Add the command to the app under both names."""
    epilog = "\n\n".join([paragraph("Further variables:", WITHOUT_FLAG), EXAMPLES])
    for command in (apiserver, kuberay_apiserver):
        app.command(cls=GoFlagsCommand, epilog=epilog)(command)

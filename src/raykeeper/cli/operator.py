"""`raykeeper operator`: KubeRay's command line. Only the table of flags is imported before the program is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from raykeeper.operator.arguments import asks_for_help
from raykeeper.operator.environment import VARIABLES
from raykeeper.operator.flags import FLAGS, Flag
from raykeeper.operator.gates import Gate


class GoFlagsCommand(TyperCommand):
    """A command that shows its options as any other, and leaves the command line as it is for Go's rules."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if asks_for_help(args):
            return super().parse_args(ctx, ["--help"])
        ctx.args = args
        return args


def operator(context: typer.Context, **_: object) -> None:
    """Reconcile RayClusters. Takes the flags of KubeRay's operator, as `-flag value`, `--flag=value` or `--flag`."""
    from raykeeper.operator.main import run

    raise typer.Exit(run(context.args))


def _parameters() -> Iterator[inspect.Parameter]:
    yield inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    for flag in FLAGS:
        option = typer.Option(flag.spelling, help=flag.help, metavar=_metavar(flag), show_default=bool(flag.default))
        yield inspect.Parameter(
            flag.name.replace("-", "_"),
            inspect.Parameter.KEYWORD_ONLY,
            default=flag.default or None,
            annotation=Annotated[str | None, option],
        )


def _metavar(flag: Flag) -> str:
    return "[=true|false]" if flag.is_switch else "VALUE"


def _epilog() -> str:
    """Gates and variables, one a line (\\b keeps the lines apart)."""
    gates = [f"  {gate.value.name}={str(gate.value.is_on).lower()}  {gate.value.meaning}" for gate in Gate]
    variables = [f"  {name}  {meaning}" for name, meaning in VARIABLES.items()]
    return "\n\n".join("\b\n" + "\n".join(part) for part in (["Feature gates:", *gates], ["Variables:", *variables]))


# typer reads options from the signature; this one is made from the table of flags, so that a flag is told once.
operator.__signature__ = inspect.Signature(list(_parameters()))  # type: ignore[attr-defined]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command(cls=GoFlagsCommand, epilog=_epilog())(operator)

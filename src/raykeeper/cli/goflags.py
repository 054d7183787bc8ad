"""Commands whose flags are a table and are read by Go's rules, as KubeRay's programs read theirs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from raykeeper.settings.arguments import asks_for_help
from raykeeper.settings.flags import Flag


class GoFlagsCommand(TyperCommand):
    """A command that shows its options as any other, and leaves the command line as it is for Go's rules."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if asks_for_help(args):
            return super().parse_args(ctx, ["--help"])
        ctx.args = args
        return args


def signature_of(flags: Sequence[Flag]) -> inspect.Signature:
    """The signature from which typer makes its options, so that a flag is told once, in the table."""
    return inspect.Signature(list(_parameters(flags)))


def _parameters(flags: Sequence[Flag]) -> Iterator[inspect.Parameter]:
    yield inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    for flag in flags:
        option = typer.Option(flag.spelling, help=_help(flag), metavar=_metavar(flag), show_default=bool(flag.default))
        yield inspect.Parameter(
            flag.name.replace("-", "_"),
            inspect.Parameter.KEYWORD_ONLY,
            default=flag.default or None,
            annotation=Annotated[str | None, option],
        )


def _help(flag: Flag) -> str:
    return f"{flag.help} Variable {flag.variable}." if flag.variable else flag.help


def _metavar(flag: Flag) -> str:
    return "[=true|false]" if flag.is_switch else "VALUE"


def paragraph(title: str, rows: Mapping[str, str]) -> str:
    """Rows under a title for the end of the help, one a line (\\b keeps the lines apart)."""
    return "\b\n" + "\n".join([title, *(f"  {name}  {meaning}" for name, meaning in rows.items())])

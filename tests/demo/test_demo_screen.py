"""What a person sees: plain lines in a file, the same in colour on a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from raykeeper.demo.screen import Screen

COLOURED = "\x1b[33m(raylet)\x1b[0m [bold] of a task"


def _shown(*, is_terminal: bool) -> str:
    written = io.StringIO()
    screen = Screen(
        Console(file=written, force_terminal=is_terminal, highlight=False, soft_wrap=True, width=60, _environ={})
    )
    with screen.step("starting"):
        screen.quote([COLOURED, "x" * 100])
    screen.say("[red] is text here")
    return written.getvalue()


def test_a_file_gets_plain_lines_of_any_length() -> None:
    shown = re.sub(r"\(\d+\.\d s\)", "(1.0 s)", _shown(is_terminal=False))
    assert shown.splitlines() == [
        "... starting",
        "  | (raylet) [bold] of a task",
        "  | " + "x" * 100,
        " ok starting (1.0 s)",
        "[red] is text here",
    ]


def test_a_terminal_keeps_the_colours_of_ray() -> None:
    assert "33m(raylet)\x1b[0m" in _shown(is_terminal=True)

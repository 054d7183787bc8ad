"""What a person sees of a demo: steps with their time, on a terminal with a spinner, elsewhere as plain lines."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text


class Screen:
    """Lines on standard output."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Say what begins, and how long it took once it is done."""
        began = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(what):
                yield
        else:
            self.say(f"... {what}")
            yield
        self._console.print(Text(" ok ", "green") + Text(f"{what} ({time.monotonic() - began:.1f} s)", "default"))

    def say(self, line: str = "", style: str = "") -> None:
        """One line; brackets in it are text and not markup."""
        self._console.print(Text(line, style or "default"))

    def quote(self, lines: Iterable[str]) -> None:
        """What another program said."""
        for line in lines:
            # Ray colours what it says; on a terminal it stays coloured, elsewhere the codes are left out.
            self._console.print(Text("  | ", "dim") + Text.from_ansi(line))

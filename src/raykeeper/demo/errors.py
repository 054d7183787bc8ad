"""What can go wrong in a demo, told with the end of what the culprit said."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError


class DemoFailed(RaykeeperError):
    """A step did not come to its end. The last lines of the program at fault follow the sentence."""

    def __init__(self, what: str, last_lines: str = "") -> None:
        said = "".join(f"\n  | {line}" for line in last_lines.splitlines())
        super().__init__(f"{what}{', its last lines:' if said else ''}{said}")

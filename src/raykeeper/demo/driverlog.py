"""What a script prints, out of the file in which Ray keeps it: read on from where the last look ended."""

from __future__ import annotations

from pathlib import Path


class DriverLog:
    """The output of one job so far."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def new_lines(self) -> list[str]:
        """Whole lines that were written since the last call; none while there is no file."""
        unread = self._unread()
        return self._taken(unread[: unread.rfind(b"\n") + 1])

    def rest(self) -> list[str]:
        """What is left after the end, also a last line without an end."""
        return self._taken(self._unread())

    def _unread(self) -> bytes:
        try:
            with self._file.open("rb") as log:
                log.seek(self._offset)
                return log.read()
        except FileNotFoundError:
            return b""

    def _taken(self, data: bytes) -> list[str]:
        self._offset += len(data)
        return data.decode(errors="replace").splitlines()

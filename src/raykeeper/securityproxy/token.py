"""The token that callers must show."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from pathlib import Path

from raykeeper.errors import Misconfigured
from raykeeper.logs import Log
from raykeeper.securityproxy.settings import SecurityProxySettings, checked_token

_BEARER = "bearer "

log = Log("raykeeper.securityproxy")


@dataclass
class Token:
    """Compared in constant time. One in a file may change: Kubernetes replaces a Secret's file under its name."""

    _text: str = field(repr=False)
    _file: Path | None = None
    _stamp: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of(cls, settings: SecurityProxySettings) -> Token:
        """Raises `Misconfigured` for a file that has none."""
        if settings.token_file is None:
            return cls(settings.token)
        token = cls("", settings.token_file)
        token._read(settings.token_file)
        return token

    def admits(self, authorization: str | None) -> bool:
        """Whether this header shows the token: bare, as KubeRay's clients send it, or as a bearer token."""
        if not authorization or not authorization.isascii():
            return False
        self._refresh()
        # Both are compared in any case: the time says nothing about which spelling is nearly right.
        is_bare = hmac.compare_digest(authorization.strip().encode(), self._text.encode())
        is_bearer = self.is_bearer(authorization)
        return is_bare or is_bearer

    def is_bearer(self, authorization: str) -> bool:
        """Whether this header has the token as a bearer token, which Kubernetes would take for one of its own."""
        shown = authorization.strip()
        bearer = shown[len(_BEARER) :].strip() if shown.lower().startswith(_BEARER) else ""
        return hmac.compare_digest(bearer.encode(errors="surrogateescape"), self._text.encode())

    def __len__(self) -> int:
        return len(self._text)

    def _refresh(self) -> None:
        if self._file is None:
            return
        try:
            if _stamp_of(self._file) != self._stamp:
                self._read(self._file)
                log.info("token read again", file=str(self._file))
        except (OSError, Misconfigured) as exc:
            log.warning("token not read again, the old one goes on", file=str(self._file), error=str(exc))

    def _read(self, file: Path) -> None:
        try:
            stamp, text = _stamp_of(file), file.read_text().strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise Misconfigured("SECURITY_TOKEN_FILE", str(file), f"it must be a readable text file ({exc})") from exc
        self._text, self._stamp = checked_token("SECURITY_TOKEN_FILE", text), stamp


def _stamp_of(file: Path) -> tuple[int, int, int]:
    status = file.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size

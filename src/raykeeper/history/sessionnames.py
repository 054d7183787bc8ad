"""A session as users name it: `<namespace>/<cluster>/<session>`."""

from __future__ import annotations

from raykeeper.errors import Misconfigured
from raykeeper.layout.keys import SessionId


def parse_session_name(text: str) -> SessionId:
    """Raises `Misconfigured` for what is not three names."""
    names = text.strip("/").split("/")
    if len(names) != 3 or not all(names):
        raise Misconfigured("session", text, "name it as <namespace>/<cluster>/<session>")
    return SessionId(*names)

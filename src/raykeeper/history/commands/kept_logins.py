"""Logins that `raykeeper login` keeps for the other commands: one file of this user alone."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from raykeeper.errors import RaykeeperError

FOLDER: Final = "raykeeper"
FILE: Final = "logins.json"
_FILE_BYTES: Final = 1 << 20


class LoginEnded(RaykeeperError):
    """The kept token is good no longer."""


class KeptLogin(msgspec.Struct, frozen=True):
    """A token for one server."""

    token: str
    ends_at: float


def logins_file(environment: Mapping[str, str]) -> Path:
    folder = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".config")
    return Path(folder) / FOLDER / FILE


def kept_token(server: str, environment: Mapping[str, str]) -> str:
    """The token for a server; empty where nobody signed in there. Raises LoginEnded."""
    login = _read(logins_file(environment)).get(server.rstrip("/"))
    if login is None:
        return ""
    if time.time() >= login.ends_at:
        raise LoginEnded(f"your login at {server} has ended: raykeeper login --server={server}")
    return login.token


def keep_login(server: str, token: str, environment: Mapping[str, str]) -> Path:
    """Keep a token, readable by this user alone, also while it is written; the file."""
    file = logins_file(environment)
    now = time.time()
    known = {one: login for one, login in _read(file).items() if login.ends_at > now}
    known[server.rstrip("/")] = KeptLogin(token, _ends_at(token))
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{FILE}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(msgspec.json.encode(known))
    draft.replace(file)
    return file


def _read(file: Path) -> dict[str, KeptLogin]:
    """What is kept; a file that somebody else made, or that is damaged, is as good as none."""
    try:
        if file.stat().st_size > _FILE_BYTES:
            return {}
        return msgspec.json.decode(file.read_bytes(), type=dict[str, KeptLogin])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _ends_at(token: str) -> float:
    """When an ID token that was checked before ends."""
    part = token.split(".")[1]
    claims = msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return float(claims["exp"])

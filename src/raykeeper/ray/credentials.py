"""Which token a request to a Ray head carries, and in which headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from raykeeper.errors import Unavailable

PROJECTED_TOKEN_FILE = Path("/var/run/secrets/ray.io/serviceaccount/token")
"""Where the operator mounts the service account's token when Ray checks tokens through Kubernetes."""


class Credentials(Protocol):
    """Asked before every request, since a token on disk is renewed while we run."""

    def headers(self) -> Mapping[str, str]:
        """Of one request; empty where the head asks for no token."""


@dataclass(frozen=True)
class NoToken:
    """For a head without token authentication."""

    def headers(self) -> Mapping[str, str]:
        return {}


@dataclass(frozen=True)
class StaticToken:
    """One token for the life of the process (`RAY_AUTH_TOKEN`)."""

    token: str = field(repr=False)

    def headers(self) -> Mapping[str, str]:
        return bearer_headers(self.token)


@dataclass(frozen=True)
class TokenFile:
    """A projected token, read anew for every request: Kubernetes renews it."""

    path: Path = PROJECTED_TOKEN_FILE

    def headers(self) -> Mapping[str, str]:
        service = f"Ray token file {self.path}"
        try:
            token = self.path.read_text().strip()
        except OSError as exc:
            raise Unavailable(service, exc.strerror or str(exc)) from exc
        except UnicodeDecodeError as exc:
            raise Unavailable(service, "it is not text") from exc
        if not token or not token.isprintable():
            raise Unavailable(service, "it does not hold one line with a token")
        return bearer_headers(token)


def bearer_headers(token: str) -> Mapping[str, str]:
    """Both spellings: proxies may take `Authorization` for their own, and not every head knows the other."""
    return {"Authorization": f"Bearer {token}", "X-Ray-Authorization": f"Bearer {token}"}


def ray_credentials(token: str, token_file: Path | None) -> Credentials:
    """The projected token where there is a file for it, else the static one, else none: KubeRay's order."""
    if token_file is not None:
        return TokenFile(token_file)
    return StaticToken(token) if token else NoToken()

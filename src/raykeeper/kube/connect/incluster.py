"""The API server and service account that Kubernetes gives to every pod."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raykeeper.clock import Clock
from raykeeper.errors import Misconfigured
from raykeeper.kube.connect.credentials import Credentials, Login, RenewedCredentials, token_end
from raykeeper.kube.connect.tls import TlsMaterial

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_MAX_AGE_SECONDS = 60.0
"""The kubelet replaces the token after 80 % of its life, minutes before it ends; client-go reads it as often."""

_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def is_given(environment: Mapping[str, str], folder: Path) -> bool:
    """Whether this process runs in a pod with a service account token."""
    return bool(environment.get(_HOST) and environment.get(_PORT) and (folder / "token").exists())


def server_url(environment: Mapping[str, str]) -> str:
    host = environment[_HOST]
    return f"https://{f'[{host}]' if ':' in host else host}:{environment[_PORT]}"


def namespace(folder: Path) -> str:
    path = folder / "namespace"
    return path.read_text().strip() if path.exists() else "default"


def service_account(folder: Path, clock: Clock) -> Credentials:
    """Credentials that follow the rotation of the token, and of the CA beside it."""

    async def read() -> Login:
        return read_service_account(folder)

    return RenewedCredentials(f"service account in {folder}", read, read_service_account(folder), clock)


def read_service_account(folder: Path) -> Login:
    """The token and CA as they are now. Reads a few KB from memory (tmpfs), so it does not leave the event loop."""
    token = _read(folder / "token")
    return Login(
        headers={"Authorization": f"Bearer {token}"},
        tls=TlsMaterial(ca=_read(folder / "ca.crt")),
        shown="the service account token",
        expires_at=token_end(token),
        max_age_seconds=TOKEN_MAX_AGE_SECONDS,
    )


def _read(path: Path) -> str:
    try:
        text = path.read_text().strip()
    except OSError as exc:
        raise Misconfigured("service account file", str(path), f"it cannot be read ({exc.strerror})") from exc
    if not text:
        raise Misconfigured("service account file", str(path), "it is empty")
    return text

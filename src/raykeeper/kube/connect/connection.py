"""How one API server is reached, and from where that is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from raykeeper.clock import Clock, SystemClock
from raykeeper.errors import Misconfigured
from raykeeper.kube.connect import incluster
from raykeeper.kube.connect.credentials import Credentials
from raykeeper.kube.connect.egress import proxy_for, usable_proxy


@dataclass(frozen=True)
class Connection:
    """One API server and our credentials for it."""

    server: str
    """Its URL without a trailing slash, such as `https://10.96.0.1:443`."""
    source: str
    """Where this was read, for messages: `kubeconfig /home/ray/.kube/config, context bed`."""
    credentials: Credentials
    namespace: str = "default"
    """Where things go that name no namespace."""
    proxy: str | None = None
    """The HTTP proxy in between."""
    tls_server_name: str | None = None
    """The name its certificate is checked against, where that is not the host of `server`."""


async def load_connection(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = incluster.SERVICE_ACCOUNT_FOLDER,
    clock: Clock | None = None,
) -> Connection:
    """The connection that an explicit file, $KUBECONFIG, the pod's service account or ~/.kube/config gives, in this
    order, as Go programs look for it. Raises `Misconfigured` naming the file and what is wrong with it."""
    clock = clock or SystemClock()
    paths = asked_for(kubeconfig, environment)
    if not paths and incluster.is_given(environment, service_account):
        return _from_pod(environment, service_account, clock)
    return await _from_files(paths or _default(environment, service_account), context, environment, clock)


def asked_for(explicit: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """The kubeconfig files that were asked for by name; several in $KUBECONFIG are merged."""
    if explicit is not None:
        return [explicit]
    return [Path(part).expanduser() for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]


def _default(environment: Mapping[str, str], service_account: Path) -> list[Path]:
    """~/.kube/config, or one sentence on everything that was looked for."""
    path = Path(environment.get("HOME") or Path.home()) / ".kube" / "config"
    if path.exists():
        return [path]
    pod = f", and no {service_account / 'token'}" if "KUBERNETES_SERVICE_HOST" in environment else ""
    cure = f"there is no such file{pod}; set KUBECONFIG, or run in a pod with a service account token"
    raise Misconfigured("kubeconfig", str(path), cure)


def _from_pod(environment: Mapping[str, str], folder: Path, clock: Clock) -> Connection:
    server = incluster.server_url(environment)
    return Connection(
        server=server,
        source=f"service account in {folder}",
        credentials=incluster.service_account(folder, clock),
        namespace=incluster.namespace(folder),
        proxy=proxy_for(server, environment),
    )


async def _from_files(
    paths: list[Path], context: str | None, environment: Mapping[str, str], clock: Clock
) -> Connection:
    # Imported here because no program in a pod needs it, nor YAML.
    from raykeeper.kube.connect.kubeconfig import read_kubeconfig
    from raykeeper.kube.connect.users import kubeconfig_credentials

    config = read_kubeconfig(paths, context)
    cluster = config.cluster.fields
    server = str(cluster.get("server", "")).rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise config.cluster.unusable(f"its server {server!r} is not an http(s) URL")
    explicit = cluster.get("proxy-url")
    return Connection(
        server=server,
        source=f"kubeconfig {config.source}",
        credentials=await kubeconfig_credentials(paths, context, clock),
        namespace=config.namespace,
        proxy=usable_proxy(explicit, "proxy-url") if explicit else proxy_for(server, environment),
        tls_server_name=cluster.get("tls-server-name"),
    )

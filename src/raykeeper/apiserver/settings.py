"""Everything about the API server that can be set, in one frozen value that `main.py` reads once and hands down."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from raykeeper.logs import LogSettings
from raykeeper.oidc.settings import OidcSettings
from raykeeper.settings.addresses import Address

AuthMode = Literal["none", "token", "passthrough", "kubernetes", "oidc"]


@dataclass(frozen=True)
class AccessToken:
    """A token of ours, and what it is good for."""

    token: str = field(repr=False)
    namespaces: frozenset[str] = frozenset()
    """Those whose objects it is good for; none stands for all."""


@dataclass(frozen=True)
class ApiAccessSettings:
    """Who may call."""

    mode: AuthMode = "none"
    """`none`, `token`, `passthrough`, `kubernetes` or `oidc` (`--auth`, `RAYKEEPER_AUTH`)."""
    tokens: tuple[AccessToken, ...] = ()
    """For the mode `token` (`RAYKEEPER_AUTH_TOKEN`, or the lines of `--auth-token-file`)."""
    audiences: tuple[str, ...] = ()
    """For the mode `kubernetes` (`--auth-audiences`); none stands for the API server's own."""
    impersonate: bool = False
    """Whether to act in the caller's name (`--impersonate`) instead of asking whether they may."""
    oidc: OidcSettings = field(default_factory=OidcSettings)
    """For the mode `oidc`."""
    answers_localhost_only: bool = False
    """Nobody said who may call, and the address is loopback: requests of web pages, and under other names than
    localhost, are refused."""
    is_undecided: bool = False
    """Nobody said who may call, and the address is not loopback, as under KubeRay's name: a warning says so."""


@dataclass(frozen=True)
class HeadSettings:
    """How Ray heads are reached."""

    cluster_domain: str = "cluster.local"
    """DNS domain of the cluster (`--cluster-domain`, `CLUSTER_DOMAIN`)."""
    is_proxied: bool = False
    """Through the Kubernetes API (`--use-kubernetes-proxy`)."""


@dataclass(frozen=True)
class KubeClientSettings:
    """How the Kubernetes API is reached."""

    kubeconfig: Path | None = None
    """(`--kubeconfig`); None looks as kubectl does."""
    qps: float = 500.0
    """Requests a second in the long run (`--qps`)."""
    burst: int = 1000
    """Requests at once (`--burst`)."""


@dataclass(frozen=True)
class ApiServerSettings:
    """Everything that can be set, in groups."""

    http: Address
    """Where HTTP is served (`--httpPortFlag`)."""
    grpc: Address
    """Where gRPC is served (`--rpcPortFlag`)."""
    metrics: Address | None = None
    """Where probes and metrics are served alone, beside HTTP (`--metrics-addr`)."""
    call_seconds: float = 60.0
    """Time that one call may take (`--grpc_timeout`)."""
    cors_origin: str = ""
    """Origin whose pages may call (`--cors-allow-origin`); empty for none."""
    v2: bool = True
    """Whether the second version of the API is served (`--enable-api-server-v2`)."""
    access: ApiAccessSettings = field(default_factory=ApiAccessSettings)
    """Who may call."""
    heads: HeadSettings = field(default_factory=HeadSettings)
    """How Ray heads are reached."""
    kube: KubeClientSettings = field(default_factory=KubeClientSettings)
    """How the Kubernetes API is reached."""
    logs: LogSettings = field(default_factory=LogSettings)
    """The server's own log lines."""
    ignored: tuple[str, ...] = ()
    """Flags that were given and have no effect; they are named in a warning at start."""

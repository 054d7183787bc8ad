"""Everything about the history server that can be set, in one frozen value that `main.py` reads once and hands down."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from raykeeper.history.access_rules import AccessRules
from raykeeper.history.alert_receivers import AlertSettings
from raykeeper.history.prices import PriceList
from raykeeper.history.retention_policy import RetentionPolicy
from raykeeper.logs import LogSettings
from raykeeper.oidc.settings import OidcSettings

GIB = 1024 * 1024 * 1024
AuthMode = Literal["none", "token", "kubernetes", "oidc", "ram"]
FactsMode = Literal["auto", "on", "off"]


@dataclass(frozen=True)
class HistoryStoreSettings:
    """Where the history is, as the user said it: either a URL, or a backend with the rest. `storage/` reads it."""

    url: str = ""
    """The whole place in one (`--store`, `RAYKEEPER_STORE_URL`); then the other fields are empty."""
    backend: str = ""
    """Kind of store in lower case (`--storage-backend`, `STORAGE_BACKEND`)."""
    root_dir: str = ""
    """Prefix of all keys (`--storage-root-dir`, `STORAGE_ROOT_DIR`)."""
    config_file: Path | None = None
    """JSON file of KubeRay's (`--storage-backend-config-path`, `STORAGE_BACKEND_CONFIG_PATH`)."""


@dataclass(frozen=True)
class LoginSettings:
    """How people sign in with a browser, and what they may see then."""

    public_url: str = ""
    """The server as browsers reach it, such as `https://history.example.org` (`--public-url`,
    `RAYKEEPER_PUBLIC_URL`); the provider sends them back to `/auth/callback` there. Never read from a request."""
    oidc: OidcSettings = field(default_factory=OidcSettings)
    """The identity provider (`--oidc-issuer-url`, `--oidc-client-id` and others); of RAM, Alibaba's own."""
    client_secret: str = field(default="", repr=False)
    """Of our client there (`RAYKEEPER_OIDC_CLIENT_SECRET`, or the content of `--oidc-client-secret-file`)."""
    cli_client_id: str = ""
    """Client of `raykeeper login` there, which has no secret (`--oidc-cli-client-id`); empty: no such login."""
    scopes: tuple[str, ...] = ()
    """Asked of the provider (`--oidc-scopes`); none stands for those that fit it."""
    rules: AccessRules = field(default_factory=AccessRules)
    """Who may come in, and what they see (`--login-allow-uids`, `--login-allow-emails`, `--login-allow-groups`,
    `--namespace-map`)."""
    asks_kubernetes: bool = False
    """SubjectAccessReviews say which namespaces somebody sees, by user name and groups (`--login-reviews`)."""
    contact: str = ""
    """Whom people ask who may not come in (`--login-contact`); shown on the pages that refuse."""
    cookie_keys: tuple[str, ...] = field(default=(), repr=False)
    """The first one seals cookies, all open them (`RAYKEEPER_COOKIE_KEYS`, or lines of `--cookie-key-file`). None: a
    new one at each start, so that people sign in again."""
    session_seconds: float = 900.0
    """After so long a session is refreshed at the provider, or people go there again (`--login-session-minutes`)."""
    max_seconds: float = 12 * 3600.0
    """After so long everybody signs in again (`--login-max-hours`)."""
    monitoring_url: str = ""
    """The second address as browsers reach it (`--monitoring-url`, `RAYKEEPER_MONITORING_URL`): whoever began to sign
    in there is led back there. It has the name of `public_url`, because cookies do. Empty: there is none."""


@dataclass(frozen=True)
class AccessSettings:
    """Who may read."""

    mode: AuthMode = "none"
    """`none`: whoever reaches the address; `token`: whoever shows the token; `kubernetes`: whoever Kubernetes knows;
    `oidc` and `ram`: whoever signs in (`--auth`, `RAYKEEPER_AUTH`)."""
    token: str = field(default="", repr=False)
    """The token itself (`RAYKEEPER_AUTH_TOKEN`, or the content of `--auth-token-file`)."""
    also: frozenset[AuthMode] = frozenset()
    """What is taken beside `mode`, as a bearer token: `token`, `kubernetes`."""
    audiences: tuple[str, ...] = ()
    """That tokens of Kubernetes must be made for (`--token-audiences`); none stands for the API server itself."""
    login: LoginSettings = field(default_factory=LoginSettings)
    """How people sign in."""
    is_audited: bool = False
    """Whether each look is noted in the log: who, what, which answer (`--audit`, `RAYKEEPER_AUDIT`)."""
    answers_localhost_only: bool = False
    """Nobody said who may read, and the address is loopback: requests under other names than localhost are refused."""
    is_undecided: bool = False
    """Nobody said who may read, and the address is not loopback, as under KubeRay's name: pages warn."""


@dataclass(frozen=True)
class CacheSettings:
    """Copies of objects on the local disk; any of it may be deleted at any time."""

    folder: Path = Path("~/.cache/raykeeper-history")
    """(`--cache-dir`, `RAYKEEPER_CACHE_DIR`); may be shared by processes of one machine."""
    max_bytes: int = 10 * GIB
    """Above this, what was used longest ago is deleted (`--cache-mb`)."""
    query_memory_bytes: int = GIB // 2
    """Memory that all queries together may use (`--query-memory-mb`); beyond that they use the disk."""


@dataclass(frozen=True)
class GrafanaSettings:
    """Where metrics of past sessions are seen, by the variables Ray itself reads."""

    host: str = ""
    """Grafana as a browser reaches it (`RAY_GRAFANA_IFRAME_HOST`, `RAY_GRAFANA_HOST`); `DISABLED` hides the tab."""
    org_id: str = "1"
    """Grafana's organisation (`RAY_GRAFANA_ORG_ID`)."""
    cluster_filter: str | None = None
    """Grafana's cluster variable (`RAY_GRAFANA_CLUSTER_FILTER`)."""
    prometheus_name: str = "Prometheus"
    """Grafana's name of the data source (`RAY_PROMETHEUS_NAME`)."""
    url: str = ""
    """Grafana as this server reaches it (`--grafana-url`, `RAYKEEPER_GRAFANA_URL`); `--monitoring-bind` leads there."""
    port: int = 0
    """Port of `--monitoring-bind` where that leads to Grafana: browsers that are told no other address find it there,
    under the name by which they call this server."""


@dataclass(frozen=True)
class KubernetesSettings:
    """Whether what Kubernetes says about Ray clusters is recorded, and from where."""

    facts: FactsMode = "auto"
    """`auto` records in a pod with a service account and with `--kubeconfig` (`--kubernetes-facts`,
    `RAYKEEPER_KUBERNETES_FACTS`)."""
    kubeconfig: Path | None = None
    """How the API server is reached from outside (`--kubeconfig`); None looks as kubectl does."""
    namespaces: tuple[str, ...] = ()
    """Those that are watched (`--kubernetes-namespaces`); none stands for all."""
    lease_namespace: str = ""
    """Where replicas agree on who records (`--kubernetes-lease-namespace`); empty for the pod's own."""
    live_objects: FactsMode = "auto"
    """Whether pages show the RayClusters, RayJobs, RayServices and RayCronJobs that exist now; `auto` as for facts
    (`--live-objects`, `RAYKEEPER_LIVE_OBJECTS`)."""


@dataclass(frozen=True)
class HistorySettings:
    """Everything that can be set, in groups."""

    store: HistoryStoreSettings
    """Where the history is."""
    bind: str = "127.0.0.1:8080"
    """Address to listen at (`--bind`, `RAYKEEPER_BIND`); any but loopback needs a decision about access. Under
    KubeRay's name it is `:8080`."""
    monitoring_bind: str = ""
    """Second address, which leads to Grafana, or to our own monitoring where there is none (`--monitoring-bind`,
    `RAYKEEPER_MONITORING_BIND`); empty for none. Who may read is the same as at `bind`."""
    access: AccessSettings = field(default_factory=AccessSettings)
    """Who may read."""
    dashboard_dir: Path | None = None
    """Folder of Ray's built dashboard (`--dashboard-dir`); None: that of the installed `ray` package, else our own."""
    cache: CacheSettings = field(default_factory=CacheSettings)
    """Copies of objects on the local disk."""
    grafana: GrafanaSettings = field(default_factory=GrafanaSettings)
    """Metrics of past sessions."""
    prices: PriceList | None = None
    """What resources cost an hour (the file of `--price-list`, `RAYKEEPER_PRICE_LIST`); None shows no cost."""
    retention: RetentionPolicy | None = None
    """How long sessions are kept (the file of `--retention`, `RAYKEEPER_RETENTION`); None removes nothing."""
    alerts: AlertSettings | None = None
    """Who is told of failed jobs (the file of `--alerts`, `RAYKEEPER_ALERTS`); None tells nobody."""
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    """What Kubernetes says about Ray clusters."""
    logs: LogSettings = field(default_factory=LogSettings)
    """The server's own log lines; the level is `--log-level` or the variable `RAYKEEPER_LOG_LEVEL`."""
    ignored: tuple[str, ...] = ()
    """Flags that were given and have no effect; they are named in a warning at start."""

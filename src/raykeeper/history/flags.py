"""The history server's flags: KubeRay's, ours, and other spellings. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from raykeeper.settings.flags import Flag, other_spelling
from raykeeper.settings.log_flags import LOG_FLAGS
from raykeeper.settings.values import parse_switch

_KUBERAY = (
    Flag(
        "storage-backend",
        "Kind of store the history is in: s3, gcs, azureblob, aliyunoss or local.",
        variable="STORAGE_BACKEND",
    ),
    Flag("storage-root-dir", "Prefix of all keys inside the bucket.", variable="STORAGE_ROOT_DIR"),
    Flag(
        "storage-backend-config-path",
        "JSON file with the settings of the store; variables take precedence.",
        variable="STORAGE_BACKEND_CONFIG_PATH",
    ),
    Flag(
        "dashboard-dir",
        "Folder of Ray's built dashboard. Default: that of the installed `ray` package, else that of raykeeper itself.",
    ),
)

_WITHOUT_EFFECT = (
    Flag("kubeconfigs", "Accepted and ignored: running clusters are read from the store too."),
    Flag(
        "use-kubernetes-proxy",
        "Accepted and ignored: no request goes to a Ray cluster.",
        parse=parse_switch,
    ),
    Flag(
        "use-auth-token-mode",
        "Accepted and ignored: no request goes to a Ray cluster, so no token of Ray's is needed.",
        parse=parse_switch,
    ),
    Flag("kube-api-qps", "Accepted and ignored: Kubernetes is watched, not asked."),
    Flag("kube-api-burst", "Accepted and ignored: Kubernetes is watched, not asked."),
    Flag("session-process-timeout", "Accepted and ignored: a session answers while it is still being read."),
    Flag("session-cache-size", "Accepted and ignored: see --cache-mb."),
    Flag("session-cache-max-memory", "Accepted and ignored: sessions are not kept in memory."),
    Flag("session-cache-ttl", "Accepted and ignored: see --cache-mb."),
)

_LOGIN = (
    Flag(
        "public-url",
        "This server as browsers reach it, such as https://history.example.org; for oidc and ram.",
        variable="RAYKEEPER_PUBLIC_URL",
    ),
    Flag("oidc-issuer-url", "URL of the identity provider.", variable="RAYKEEPER_OIDC_ISSUER_URL"),
    Flag("oidc-client-id", "Our client at the identity provider.", variable="RAYKEEPER_OIDC_CLIENT_ID"),
    Flag(
        "oidc-client-secret-file",
        "File with the client's secret; the variable RAYKEEPER_OIDC_CLIENT_SECRET holds the secret itself.",
        variable="RAYKEEPER_OIDC_CLIENT_SECRET_FILE",
    ),
    Flag(
        "oidc-cli-client-id",
        "Client of raykeeper login there, without a secret, that may come back to http://127.0.0.1/callback.",
        variable="RAYKEEPER_OIDC_CLI_CLIENT_ID",
    ),
    Flag(
        "oidc-scopes",
        "Scopes to ask for, separated by spaces. Default: openid profile email, and offline_access where it is known; "
        "for ram openid aliuid profile.",
        variable="RAYKEEPER_OIDC_SCOPES",
    ),
    Flag(
        "oidc-username-claim",
        "Claim that is the user's name for Kubernetes.",
        default="sub",
        variable="RAYKEEPER_OIDC_USERNAME_CLAIM",
    ),
    Flag(
        "oidc-username-prefix",
        "Put before the user's name; - for nothing. Default: the issuer and #, except for e-mail addresses.",
        variable="RAYKEEPER_OIDC_USERNAME_PREFIX",
    ),
    Flag(
        "oidc-groups-claim",
        "Claim that lists the user's groups.",
        default="groups",
        variable="RAYKEEPER_OIDC_GROUPS_CLAIM",
    ),
    Flag("oidc-groups-prefix", "Put before each group.", variable="RAYKEEPER_OIDC_GROUPS_PREFIX"),
    Flag("oidc-ca-file", "Certificate authority of the identity provider.", variable="RAYKEEPER_OIDC_CA_FILE"),
    Flag(
        "login-allow-uids",
        "Who may sign in, by uid (of ram) or subject, separated by commas; * for everybody.",
        variable="RAYKEEPER_LOGIN_ALLOW_UIDS",
    ),
    Flag(
        "login-allow-emails",
        "Who may sign in, by verified e-mail address, separated by commas; *@example.org for all of a domain.",
        variable="RAYKEEPER_LOGIN_ALLOW_EMAILS",
    ),
    Flag(
        "login-allow-groups",
        "Who may sign in, by group, separated by commas.",
        variable="RAYKEEPER_LOGIN_ALLOW_GROUPS",
    ),
    Flag(
        "namespace-map",
        "YAML file that says which namespaces groups and users see.",
        variable="RAYKEEPER_NAMESPACE_MAP",
    ),
    Flag(
        "login-reviews",
        "Ask Kubernetes which namespaces somebody who signed in sees, by user name and groups.",
        default="false",
        variable="RAYKEEPER_LOGIN_REVIEWS",
        parse=parse_switch,
    ),
    Flag(
        "login-contact",
        "Whom people ask who may not come in, such as an address or a chat channel.",
        variable="RAYKEEPER_LOGIN_CONTACT",
    ),
    Flag(
        "login-session-minutes",
        "Minutes after which a session is refreshed at the identity provider.",
        default="15",
        variable="RAYKEEPER_LOGIN_SESSION_MINUTES",
    ),
    Flag(
        "login-max-hours",
        "Hours after which everybody signs in again.",
        default="12",
        variable="RAYKEEPER_LOGIN_MAX_HOURS",
    ),
    Flag(
        "cookie-key-file",
        "File with keys that seal cookies, one in a line, shared by all replicas: the first seals, all open. The "
        "variable RAYKEEPER_COOKIE_KEYS holds the keys themselves.",
        variable="RAYKEEPER_COOKIE_KEY_FILE",
    ),
    Flag(
        "token-audiences",
        "Audiences that tokens of Kubernetes must be made for, separated by commas. Default: the API server.",
        variable="RAYKEEPER_TOKEN_AUDIENCES",
    ),
    Flag(
        "audit",
        "Log a line for each look: who, what, which answer.",
        default="false",
        variable="RAYKEEPER_AUDIT",
        parse=parse_switch,
    ),
)

_OURS = (
    Flag(
        "store",
        "Where the history is, instead of the --storage flags: s3://bucket/prefix, gs://, azblob://, oss:// or "
        "file:///folder.",
        variable="RAYKEEPER_STORE_URL",
    ),
    Flag(
        "bind",
        "Address to listen on: host:port, or :port for all interfaces, which needs --auth. Default of the command "
        "historyserver: :8080.",
        default="127.0.0.1:8080",
        variable="RAYKEEPER_BIND",
    ),
    Flag(
        "auth",
        "Authentication: oidc, ram (Alibaba Cloud), kubernetes, token, several of them such as oidc,kubernetes, or "
        "none (everybody who can reach the address; the default on loopback).",
        variable="RAYKEEPER_AUTH",
    ),
    Flag(
        "auth-token-file",
        "File with the token for --auth=token; the variable RAYKEEPER_AUTH_TOKEN holds the token itself.",
        variable="RAYKEEPER_AUTH_TOKEN_FILE",
    ),
    *_LOGIN,
    Flag(
        "monitoring-bind",
        "Second address to listen on, such as :3000: it leads to Grafana (--grafana-url), or to the resource curves of "
        "the store. Access is the same as at --bind. Default: none.",
        variable="RAYKEEPER_MONITORING_BIND",
    ),
    Flag(
        "monitoring-url",
        "The second address as browsers reach it, to lead those back who sign in from there; for oidc and ram. "
        "Default: --public-url with the port of --monitoring-bind.",
        variable="RAYKEEPER_MONITORING_URL",
    ),
    Flag(
        "grafana-url",
        "Grafana as this server reaches it, such as http://grafana.monitoring; --monitoring-bind leads there. "
        "Grafana's own login stays.",
        variable="RAYKEEPER_GRAFANA_URL",
    ),
    Flag(
        "cache-dir",
        "Folder for cached objects. It may be deleted at any time, and shared by processes.",
        default="~/.cache/raykeeper-history",
        variable="RAYKEEPER_CACHE_DIR",
    ),
    Flag("cache-mb", "Maximum size of --cache-dir in MB.", default="10240", variable="RAYKEEPER_CACHE_MB"),
    Flag(
        "query-memory-mb",
        "MB of memory for all queries together; larger queries spill to disk.",
        default="512",
        variable="RAYKEEPER_QUERY_MEMORY_MB",
    ),
    Flag(
        "price-list",
        "YAML or JSON file with prices of CPU-, memory-, GPU- and node-hours; sessions and jobs then have a cost.",
        variable="RAYKEEPER_PRICE_LIST",
    ),
    Flag(
        "retention",
        "YAML or JSON file that says how long sessions are kept, by namespace, outcome, number and size; others are "
        "removed. Default: nothing is removed.",
        variable="RAYKEEPER_RETENTION",
    ),
    Flag(
        "alerts",
        "YAML or JSON file with receivers of alerts about failed jobs: webhooks, Slack, Alertmanager.",
        variable="RAYKEEPER_ALERTS",
    ),
    Flag(
        "kubernetes-facts",
        "Record pod states and Events of Ray clusters, such as why a pod was killed: on, off, or auto "
        "(in a pod with a service account, and with --kubeconfig).",
        default="auto",
        variable="RAYKEEPER_KUBERNETES_FACTS",
    ),
    Flag(
        "kubeconfig",
        "Kubeconfig file for the API server. Default: $KUBECONFIG, the pod's service account, ~/.kube/config.",
    ),
    Flag(
        "kubernetes-namespaces",
        "Namespaces to watch, separated by commas. Default: all.",
        variable="RAYKEEPER_KUBERNETES_NAMESPACES",
    ),
    Flag(
        "kubernetes-lease-namespace",
        "Namespace of the Lease by which replicas elect the one that records. Default: the pod's own.",
        variable="RAYKEEPER_KUBERNETES_LEASE_NAMESPACE",
    ),
    Flag(
        "live-objects",
        "Show the RayClusters, RayJobs, RayServices and RayCronJobs that exist now, read-only: on, off, or auto "
        "(in a pod with a service account, and with --kubeconfig).",
        default="auto",
        variable="RAYKEEPER_LIVE_OBJECTS",
    ),
    *LOG_FLAGS,
)


_OTHER_SPELLINGS = (
    other_spelling("store-url", "store"),
    other_spelling("callback-service-name", "public-url", "CALLBACK_SERVICE_NAME"),
    other_spelling("runtime-class-name", "storage-backend"),
    other_spelling("runtime-class-config-path", "storage-backend-config-path"),
    other_spelling("ray-root-dir", "storage-root-dir", "RAY_ROOT_DIR"),
)
"""How the collector, KubeRay before 1.7 and Alibaba's ACK call the same."""

FLAGS = (*_KUBERAY, *_OURS, *_OTHER_SPELLINGS, *_WITHOUT_EFFECT)

WITHOUT_EFFECT = tuple(flag.name for flag in _WITHOUT_EFFECT)
"""Flags that are accepted so that existing command lines keep working."""

"""The API server's flags: KubeRay's, ours, and kube-apiserver's for OpenID Connect. Cheap to import, as `--help` is."""

from __future__ import annotations

from raykeeper.settings.flags import Flag, other_spelling
from raykeeper.settings.log_flags import LOG_FLAGS
from raykeeper.settings.values import parse_switch

_KUBERAY = (
    Flag(
        "httpPortFlag",
        "Address for HTTP: host:port, or :port for all interfaces, which needs --auth. Default of the command "
        "kuberay-apiserver: :8888.",
        default="127.0.0.1:8888",
        variable="RAYKEEPER_APISERVER_HTTP",
    ),
    Flag(
        "rpcPortFlag",
        "Address for gRPC, in the same spelling. Default of the command kuberay-apiserver: :8887.",
        default="127.0.0.1:8887",
        variable="RAYKEEPER_APISERVER_GRPC",
    ),
    Flag("grpc_timeout", "Time that one call may take, over HTTP as well.", default="1m"),
    Flag(
        "cors-allow-origin",
        "Origin whose pages may call the API over HTTP, or *. Default: none.",
        variable="RAYKEEPER_CORS_ALLOW_ORIGIN",
    ),
    Flag(
        "enable-api-server-v2",
        "Serve V2 as well: the Kubernetes API, as far as it is about Ray.",
        parse=parse_switch,
        default="true",
    ),
    Flag(
        "kubeconfig",
        "Kubeconfig file for the API server. Default: $KUBECONFIG, the pod's service account, ~/.kube/config.",
    ),
)

_OURS = (
    Flag(
        "metrics-addr",
        "One more address, for /healthz, /livez, /readyz and /metrics alone: for kubelets and Prometheus, where HTTP "
        "itself is on loopback behind a proxy. Default: none.",
        variable="RAYKEEPER_APISERVER_METRICS",
    ),
    Flag(
        "auth",
        "Who may call: none (everybody who can reach the address, with our rights; the default on loopback), token "
        "(who shows a token of ours, with our rights), passthrough (the caller's token is passed on to Kubernetes), "
        "kubernetes (the token is checked by TokenReview, each request by SubjectAccessReview) or oidc (an ID token, "
        "each request by SubjectAccessReview).",
        variable="RAYKEEPER_AUTH",
    ),
    Flag(
        "auth-token-file",
        "File with tokens for --auth=token: one a line; names of namespaces after a space, separated by commas, limit "
        "a token to them. The variable RAYKEEPER_AUTH_TOKEN holds one token itself.",
        variable="RAYKEEPER_AUTH_TOKEN_FILE",
    ),
    Flag(
        "auth-audiences",
        "Audiences of which --auth=kubernetes takes tokens, separated by commas. Default: the API server's own.",
        variable="RAYKEEPER_AUTH_AUDIENCES",
    ),
    Flag(
        "impersonate",
        "With --auth=kubernetes or oidc: act in the caller's name, so that Kubernetes decides and its audit log has "
        "the name, instead of asking by SubjectAccessReview. Needs the right to impersonate.",
        parse=parse_switch,
        default="false",
        variable="RAYKEEPER_IMPERSONATE",
    ),
    Flag("oidc-issuer-url", "URL of the identity provider for --auth=oidc.", variable="RAYKEEPER_OIDC_ISSUER_URL"),
    Flag("oidc-client-id", "Audience that ID tokens must be made for.", variable="RAYKEEPER_OIDC_CLIENT_ID"),
    Flag("oidc-username-claim", "Claim that is the user's name.", default="sub"),
    Flag(
        "oidc-username-prefix",
        "Put before the user's name; - for nothing. Default: the issuer and #, unless the claim is email.",
    ),
    Flag("oidc-groups-claim", "Claim that lists the user's groups. Default: none."),
    Flag("oidc-groups-prefix", "Put before each group."),
    Flag("oidc-required-claim", "Claims that an ID token must have, as name=value, separated by commas."),
    Flag("oidc-ca-file", "Certificate authority of the identity provider. Default: the machine's own."),
    Flag(
        "use-kubernetes-proxy",
        "Reach Ray heads through the Kubernetes API, as outside of the cluster.",
        parse=parse_switch,
        default="false",
        variable="RAYKEEPER_USE_KUBERNETES_PROXY",
    ),
    Flag("cluster-domain", "DNS domain of the cluster.", default="cluster.local", variable="CLUSTER_DOMAIN"),
    Flag("qps", "Requests a second to the Kubernetes API, in the long run.", default="500"),
    Flag("burst", "Requests to the Kubernetes API at once.", default="1000"),
    *LOG_FLAGS,
)

_OTHER_SPELLINGS = (other_spelling("logFilePath", "log-file-path"),)

_WITHOUT_EFFECT = (
    Flag("collectMetricsFlag", "Accepted and ignored, as in KubeRay: metrics are always on.", parse=parse_switch),
    Flag("localSwaggerPath", "Accepted and ignored: the documents are part of the program."),
)

FLAGS = (*_KUBERAY, *_OURS, *_OTHER_SPELLINGS, *_WITHOUT_EFFECT)

WITHOUT_EFFECT = tuple(flag.name for flag in _WITHOUT_EFFECT)
"""Flags that are accepted so that existing command lines keep working."""

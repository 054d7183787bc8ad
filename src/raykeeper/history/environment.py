"""The history server's environment variables. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from raykeeper.history.flags import FLAGS

WITHOUT_FLAG = {
    "RAYKEEPER_AUTH_TOKEN": "Token for `--auth=token`, at least 16 characters.",
    "RAYKEEPER_OIDC_CLIENT_SECRET": "Secret of our client at the identity provider.",
    "RAYKEEPER_COOKIE_KEYS": "Keys that seal cookies, separated by commas; the first seals, all open.",
    "RAY_GRAFANA_HOST": "Grafana as a browser reaches it; `DISABLED` hides the metrics tab.",
    "RAY_GRAFANA_IFRAME_HOST": "The same for panels inside pages; beats `RAY_GRAFANA_HOST`.",
    "RAY_GRAFANA_ORG_ID": "Grafana's organisation; default 1.",
    "RAY_GRAFANA_CLUSTER_FILTER": "Value of the cluster variable in Grafana's dashboards.",
    "RAY_PROMETHEUS_NAME": "Grafana's name of the data source; default Prometheus.",
}
"""Secrets, which have no place on a command line, and what Ray itself reads from its environment."""

VARIABLES = {
    **{flag.variable: f"`{flag.spelling}`: {flag.help}" for flag in FLAGS if flag.variable},
    **WITHOUT_FLAG,
}

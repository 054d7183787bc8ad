"""The collector's environment variables under KubeRay's names. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from raykeeper.collector.flags import FLAGS

WITHOUT_FLAG = {
    "FQ_RAY_IP": "Host of the Ray head, with or without http:// and port. Not required.",
    "KUBERNETES_SERVICE_HOST": "Set by Kubernetes in every pod; where it is not set, the namespace is `local`.",
    "POD_IP": "IP of the pod, for the record. Not required.",
    "POD_NAME": "Name of the pod, for the record; `HOSTNAME` where it is not set.",
    "HOSTNAME": "Set by Kubernetes to the name of the pod.",
    "RAY_AUTH_MODE": "`token` where Ray asks for one; then there must be a token.",
    "RAY_AUTH_TOKEN": "Token that the dashboard asks for.",
    "RAY_AUTH_TOKEN_PATH": "File with that token, where `RAY_AUTH_TOKEN` is not set.",
    "RAY_CLUSTER_UID": "Uid of the RayCluster, for the record: what Kubernetes says about it is kept under it.",
    "RAY_DASHBOARD_PORT": "Port of the dashboard where `FQ_RAY_IP` has none; default 8265.",
    "RAY_ENABLE_K8S_TOKEN_AUTH": "`true` takes the token that Kubernetes projects for Ray, before all others.",
}
"""Facts about the pod, and secrets, which have no place on a command line."""

WITHOUT_EFFECT = {
    "RAY_COLLECTOR_ROTATED_LOG_SCAN_INTERVAL": "Accepted and ignored: rotated files are followed at once.",
    "SUPPORT_RAY_EVENT_UNSUPPORTED_DATA": "Accepted and ignored: the head's collector always asks the dashboard.",
}

VARIABLES = {
    **{flag.variable: f"`{flag.spelling}`: {flag.help}" for flag in FLAGS if flag.variable},
    **WITHOUT_FLAG,
    **WITHOUT_EFFECT,
}

"""RAM roles for service accounts (RRSA): how a collector in Alibaba's ACK comes by the right to write to OSS. Pure.

Alibaba's STS gives a role's keys to whoever shows a token of a trusted ServiceAccount. Either ACK's pod identity
webhook mounts that token, asked by a label of the pod and an annotation of the account, or the operator does, where it
was told the cluster's OIDC provider. Both bring it to the collector alone: user code must not write to the bucket.
"""

from __future__ import annotations

from typing import Final

from raykeeper.api.containers import HISTORY_COLLECTOR
from raykeeper.api.meta import JSON
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared.env import env_of, literal, missing
from raykeeper.operator.shared.history_problems import PROVIDER_ARN
from raykeeper.operator.shared.mounts import attach

_WEBHOOK: Final = "pod-identity.alibabacloud.com"
ROLE_ANNOTATION: Final = f"{_WEBHOOK}/role-name"
INJECTION_LABEL: Final = f"{_WEBHOOK}/injection"
ONLY_CONTAINERS: Final = f"{_WEBHOOK}/only-containers"

TOKEN_VOLUME: Final = "rrsa-oidc-token"  # noqa: S105 - the name of a volume
TOKEN_PATH: Final = "/var/run/secrets/ack.alibabacloud.com/rrsa-tokens"  # noqa: S105 - a path
AUDIENCE: Final = "sts.aliyuncs.com"
TOKEN_SECONDS: Final = 3600  # the webhook's default; the kubelet renews it in time


def account_annotations(settings: HistorySettings) -> dict[str, str]:
    """Of the ServiceAccount; what an administrator gave for it wins."""
    role = {ROLE_ANNOTATION: settings.cloud_role_name} if settings.cloud_role_name else {}
    return {**role, **settings.service_account_annotations}


def pod_labels(settings: HistorySettings) -> dict[str, str]:
    """What makes the webhook look at a pod, also in a namespace where it is not told to."""
    return {INJECTION_LABEL: "on"} if _is_webhook_asked(settings) else {}


def pod_annotations(settings: HistorySettings) -> dict[str, str]:
    """What keeps the webhook from other containers."""
    return {ONLY_CONTAINERS: HISTORY_COLLECTOR} if _is_webhook_asked(settings) else {}


def _is_webhook_asked(settings: HistorySettings) -> bool:
    return bool(settings.cloud_role_name and not settings.oidc_provider_arn)


def add_role(spec: JSON, collector: JSON, settings: HistorySettings) -> None:
    """Let the collector take the role without the webhook, where the OIDC provider is known."""
    provider = PROVIDER_ARN.fullmatch(settings.oidc_provider_arn)
    if not provider or not settings.cloud_role_name:
        return
    env = env_of(collector)
    role = [
        literal("ALIBABA_CLOUD_ROLE_ARN", f"acs:ram::{provider['account']}:role/{settings.cloud_role_name}"),
        literal("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", settings.oidc_provider_arn),
        literal("ALIBABA_CLOUD_OIDC_TOKEN_FILE", f"{TOKEN_PATH}/token"),
    ]
    collector["env"] = [*env, *missing(env, role)]
    token = {"audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS, "path": "token"}
    volume = {"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}
    attach(spec, collector, volume, {"name": TOKEN_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True})

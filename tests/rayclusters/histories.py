"""Operators' settings of history by annotation, one for each kind of store, and clusters that ask for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from rayclusters.manifests import ClusterBuilder, a_cluster
from raykeeper.api import labels
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.settings import HistorySettings
from raykeeper.operator.shared.history import History

OF_ACK: Final = Path(__file__).parent / "ack-raycluster.yaml"
"""The RayCluster of Alibaba's documentation, as it stands there."""
IMAGE: Final = "raykeeper:1.2.3"
ON_ACK: Final = HistorySettings(
    collector_image=IMAGE,
    callback_service_name="localhost:8080",
    cloud_role_name="ray-history",
    oss_bucket="history",
    oss_endpoint="oss-cn-hangzhou-internal.aliyuncs.com",
    oss_region="cn-hangzhou",
    oss_root_dir="ray/log",
)
"""As Alibaba's documentation has it."""
WITH_PROVIDER: Final = replace(ON_ACK, oidc_provider_arn="acs:ram::1234567890:oidc-provider/ack-rrsa-c1")
IN_S3: Final = HistorySettings(
    collector_image=IMAGE,
    collector_resources={"limits": {"cpu": "300m", "memory": "300Mi"}, "requests": {"cpu": "60m", "memory": "90Mi"}},
    store_url="s3://history/ray?region=eu-central-1",
    env=({"name": "S3_ENDPOINT", "value": "http://minio:9000"},),
    secret_name="ray-history",
)
IN_S3_BY_ROLE: Final = HistorySettings(
    collector_image=IMAGE,
    store_url="s3://history",
    service_account_prefix="rhs",
    service_account_annotations={"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/history"},
)
IN_GCS: Final = HistorySettings(collector_image=IMAGE, store_url="gs://history/ray")
IN_AZURE: Final = HistorySettings(
    collector_image=IMAGE,
    env=(
        {"name": "STORAGE_BACKEND", "value": "azureblob"},
        {"name": "AZURE_STORAGE_CONTAINER", "value": "history"},
        {
            "name": "AZURE_STORAGE_CONNECTION_STRING",
            "valueFrom": {"secretKeyRef": {"name": "azure", "key": "connection"}},
        },
    ),
)
IN_FOLDER: Final = HistorySettings(
    collector_image=IMAGE,
    store_url="file:///var/history",
    store_volume={"nfs": {"server": "nas", "path": "/ray"}},
)
STORES: Final = {
    "oss": ON_ACK,
    "oss-with-provider": WITH_PROVIDER,
    "s3": IN_S3,
    "s3-by-role": IN_S3_BY_ROLE,
    "gcs": IN_GCS,
    "azure": IN_AZURE,
    "folder": IN_FOLDER,
}
BY_ACK: Final = {labels.ENABLE_HISTORYSERVER: "true"}
OURS: Final = {labels.HISTORY: "true"}


def remembered(cluster: ClusterBuilder | None = None) -> ClusterBuilder:
    """A cluster that asks for history, in the words of Alibaba's documentation."""
    return (cluster or a_cluster()).annotated(BY_ACK)


def with_history(defaults: PodDefaults, settings: HistorySettings = ON_ACK) -> PodDefaults:
    return replace(defaults, history=History(settings))

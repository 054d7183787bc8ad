"""Sidecars that were written for older collectors start ours with nothing changed but the image."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from raykeeper.cli.main import to_arguments
from raykeeper.collector.settings import (
    BucketSettings,
    ClusterSettings,
    CollectorSettings,
    HeadSettings,
    NodeSettings,
    RayTokenSettings,
)
from raykeeper.collector.sources import read_settings

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "raycluster-historyserver-head-7x2kq"}
MINIO = {
    "S3DISABLE_SSL": "true",
    "AWS_S3ID": "minioadmin",
    "AWS_S3SECRET": "minioadmin",
    "AWS_S3TOKEN": "",
    "S3_BUCKET": "ray-historyserver",
    "S3_ENDPOINT": "minio-service.minio-dev:9000",
    "S3_REGION": "test",
    "S3FORCE_PATH_STYLE": "true",
}
"""What the store's own part reads; it is none of the collector's business, so it must not disturb it."""


def started(*command: str, **environment: str) -> CollectorSettings:
    """The settings of a container with this command line and environment."""
    program, *arguments = to_arguments(command)
    assert program == "collector"
    return read_settings(arguments, POD | environment)


@pytest.mark.parametrize(("written", "role"), [("Head", "head"), ("Worker", "worker")])
def test_the_sidecar_of_kuberays_first_collector(written: str, role: Literal["head", "worker"]) -> None:
    settings = started(
        "collector",
        f"--role={written}",
        "--runtime-class-name=s3",
        "--ray-cluster-name=raycluster-historyserver",
        "--ray-root-dir=log",
        "--events-port=8084",
        **MINIO,
    )
    assert settings == CollectorSettings(
        cluster=ClusterSettings("raycluster-historyserver"),
        bucket=BucketSettings(backend="s3", root_dir="log"),
        node=NodeSettings(role, pod_name=POD["HOSTNAME"]),
    )


def test_the_sidecar_of_kuberay_1_6_with_all_that_it_could_be_told() -> None:
    settings = started(
        "/usr/local/bin/collector",
        "--role=Head",
        "--runtime-class-name=aliyunoss",
        "--runtime-class-config-path=/var/collector-config/data",
        "--ray-cluster-name=wukun-ray240-x7k2p",
        "--ray-cluster-id=default",
        "--ray-root-dir=log",
        "--log-batching=1000",
        "--push-interval=1m",
        "--events-port=8084",
        SUPPORT_RAY_EVENT_UNSUPPORTED_DATA="true",
        RAY_DASHBOARD_ADDRESS="http://localhost:8265",
    )
    assert settings == CollectorSettings(
        cluster=ClusterSettings("wukun-ray240-x7k2p"),
        bucket=BucketSettings(backend="aliyunoss", root_dir="log", config_file=Path("/var/collector-config/data")),
        node=NodeSettings("head", pod_name=POD["HOSTNAME"]),
        ignored=("--log-batching", "--push-interval", "SUPPORT_RAY_EVENT_UNSUPPORTED_DATA"),
    )


def test_the_sidecar_of_alibabas_operator_with_its_role_by_rrsa() -> None:
    # Its documentation shows bucket, endpoint, region, root and role, but no command line: the flags are those of
    # the program that it became.
    settings = started(
        "collector",
        "--role=Worker",
        "--runtime-class-name=aliyunoss",
        "--ray-cluster-name=wukun-ray240-x7k2p",
        "--ray-cluster-id=default",
        "--ray-root-dir=history",
        OSS_BUCKET="ray-history",
        OSS_ENDPOINT="oss-cn-hangzhou-internal.aliyuncs.com",
        OSS_REGION="cn-hangzhou",
        ALIBABA_CLOUD_ROLE_ARN="acs:ram::1234567890:role/ray-historyserver",
        ALIBABA_CLOUD_OIDC_PROVIDER_ARN="acs:ram::1234567890:oidc-provider/ack-rrsa",
        ALIBABA_CLOUD_OIDC_TOKEN_FILE="/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token",
    )
    assert settings == CollectorSettings(
        cluster=ClusterSettings("wukun-ray240-x7k2p"),
        bucket=BucketSettings(backend="aliyunoss", root_dir="history"),
        node=NodeSettings("worker", pod_name=POD["HOSTNAME"]),
    )


def test_the_sidecar_that_an_operator_injects_has_no_flags_at_all() -> None:
    settings = started(
        "collector",
        POD_IP="10.244.0.14",
        RAY_CLUSTER_NAME="nightly-x7k2p",
        RAY_CLUSTER_NAMESPACE="team-a",
        RAY_CLUSTER_UID="0b9c7a51-6d0e-4f0c-9a39-5e0f1c1f3f55",
        RAY_ROLE="Head",
        EVENTS_PORT="8084",
        FQ_RAY_IP="nightly-x7k2p-head-svc.team-a.svc.cluster.local",
        OWNER_KIND="RayJob",
        OWNER_NAME="nightly",
        RAY_DASHBOARD_ADDRESS="http://localhost:8265",
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN="secret",
        STORAGE_BACKEND="gcs",
        GCS_BUCKET="history",
    )
    assert settings == CollectorSettings(
        cluster=ClusterSettings("nightly-x7k2p", "team-a", "RayJob", "nightly", "0b9c7a51-6d0e-4f0c-9a39-5e0f1c1f3f55"),
        bucket=BucketSettings(backend="gcs"),
        node=NodeSettings("head", pod_name=POD["HOSTNAME"], pod_ip="10.244.0.14"),
        head=HeadSettings(
            head_address="http://nightly-x7k2p-head-svc.team-a.svc.cluster.local:8265",
            auth=RayTokenSettings("token", "secret"),
        ),
    )

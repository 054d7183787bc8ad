"""Settings of a store: KubeRay's variables, its JSON file, and URLs; what cannot be used stops by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.storage.backends.azure import AZURE
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.gcs import GCS
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.backends.oss import OSS
from raykeeper.storage.backends.s3 import S3
from raykeeper.storage.backends.table import BACKENDS, BY_NAME, BY_SCHEME
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.settings.urls import parse_store_url

AWS_KEYS = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "its-secret", "AWS_SESSION_TOKEN": "its-token"}
AZURE_STRING = "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5;EndpointSuffix=core.windows.net"


def read(backend: str, environment: dict[str, str], file: Path | None = None, root: str = "") -> StoreSettings:
    return read_store_settings(backend, root, environment, file)


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return tmp_path / "storage.json"


def test_s3_without_any_setting_is_kuberays_bucket_on_aws() -> None:
    assert read("s3", {}) == StoreSettings(
        S3, "ray-historyserver", options={"region": "us-east-1", "enable_virtual_host_style": "true"}
    )


OLD_AWS_KEYS = {"AWS_S3ID": "an-old-key", "AWS_S3SECRET": "its-secret", "AWS_S3TOKEN": ""}


def test_s3_takes_keys_under_the_names_of_kuberays_first_samples() -> None:
    assert read("s3", OLD_AWS_KEYS).secrets == {"access_key_id": "an-old-key", "secret_access_key": "its-secret"}


def test_amazons_names_of_keys_beat_the_older_ones_as_a_whole() -> None:
    found = read("s3", OLD_AWS_KEYS | {"AWS_S3TOKEN": "old-token"} | AWS_KEYS)
    assert found.secrets == {
        "access_key_id": "a-key",
        "secret_access_key": "its-secret",
        "session_token": "its-token",
    }


def test_s3_takes_every_variable_of_kuberay() -> None:
    variables = {"S3_BUCKET": "b", "S3_ENDPOINT": "minio.example.com:9000", "S3_REGION": "eu-1"}
    switches = {"S3FORCE_PATH_STYLE": "true", "S3DISABLE_SSL": "true"}
    found = read("S3", variables | switches | AWS_KEYS, root="/log/ray/")
    assert (found.bucket, found.root, found.endpoint) == ("b", "log/ray", "http://minio.example.com:9000")
    assert found.options == {"region": "eu-1"}
    assert found.secrets == {"access_key_id": "a-key", "secret_access_key": "its-secret", "session_token": "its-token"}


@pytest.mark.parametrize(
    ("endpoint", "in_host"),
    [
        ("https://oss-cn-hangzhou.aliyuncs.com", True),
        ("http://10.0.0.7:9000", False),
        ("http://[::1]:9000", False),
        ("http://minio:9000", False),
        ("http://minio.store.svc.cluster.local:9000", False),
    ],
)
def test_the_bucket_is_part_of_the_host_name_only_where_that_can_resolve(endpoint: str, in_host: bool) -> None:
    found = read("s3", {"S3_ENDPOINT": endpoint})
    assert ("enable_virtual_host_style" in found.options) is in_host


def test_the_region_of_s3_may_come_from_aws_own_variables() -> None:
    assert read("s3", {"AWS_REGION": "eu-2", "AWS_DEFAULT_REGION": "eu-3"}).options["region"] == "eu-2"
    assert read("s3", {"AWS_DEFAULT_REGION": "eu-3"}).options["region"] == "eu-3"


def test_google_needs_a_bucket_and_knows_its_emulator() -> None:
    assert read("gcs", {"GCS_BUCKET": "b"}) == StoreSettings(GCS, "b")
    emulated = read("gcs", {"GCS_BUCKET": "b", "STORAGE_EMULATOR_HOST": "localhost:4443"})
    assert (emulated.endpoint, emulated.options["allow_anonymous"]) == ("http://localhost:4443", "true")


def test_azure_takes_a_connection_string() -> None:
    found = read("azureblob", {"AZURE_STORAGE_CONNECTION_STRING": AZURE_STRING})
    assert (found.bucket, found.endpoint) == ("ray-historyserver", "https://acc.blob.core.windows.net")
    assert (found.options, found.secrets) == ({"account_name": "acc"}, {"account_key": "a2V5"})


def test_azure_takes_a_shared_access_signature_and_its_emulator() -> None:
    signature = "BlobEndpoint=https://x.example.com/;SharedAccessSignature=sv=2021&sig=c2ln"
    found = read("azureblob", {"AZURE_STORAGE_CONNECTION_STRING": signature})
    assert (found.endpoint, found.secrets) == ("https://x.example.com", {"sas_token": "sv=2021&sig=c2ln"})
    emulator = read("azureblob", {"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"})
    assert emulator.endpoint == "http://127.0.0.1:10000/devstoreaccount1"


@pytest.mark.parametrize("mode", ["workload_identity", "default", ""])
def test_azure_takes_an_account_with_an_identity_of_the_surroundings(mode: str) -> None:
    variables = {"AZURE_STORAGE_ACCOUNT_URL": "https://acc.blob.core.windows.net/", "AZURE_STORAGE_AUTH_MODE": mode}
    expected = StoreSettings(AZURE, "ray-historyserver", endpoint="https://acc.blob.core.windows.net")
    assert read("azureblob", variables) == expected


def test_oss_takes_an_endpoint_or_a_region() -> None:
    variables = {"OSS_BUCKET": "b", "OSS_REGION": "cn-hangzhou"}
    assert read("aliyunoss", variables).endpoint == "https://oss-cn-hangzhou.aliyuncs.com"
    inside = variables | {"OSS_ENDPOINT": "oss-cn-hangzhou-internal.aliyuncs.com"}
    assert read("aliyunoss", inside).endpoint == "https://oss-cn-hangzhou-internal.aliyuncs.com"


@pytest.mark.parametrize("name", ["local", "file"])
def test_a_local_folder_is_a_store(name: str) -> None:
    assert read(name, {"LOCAL_STORAGE_DIR": "/data"}, root="r") == StoreSettings(LOCAL, "/data", "r")


def test_the_file_fills_what_the_environment_leaves_open(config_file: Path) -> None:
    content = {"s3Bucket": "of-file", "s3Endpoint": "http://of-file", "s3ForcePathStyle": "true", "s3DisableSSL": True}
    config_file.write_text(json.dumps(content | {"ossBucket": "another backend's", "unknown": 1}))
    found = read("s3", {"S3_BUCKET": "of-environment", "S3_REGION": ""}, config_file)
    assert (found.bucket, found.endpoint) == ("of-environment", "http://of-file")


def test_the_file_has_a_key_for_every_variable() -> None:
    fields = [field for backend in BACKENDS for field in backend.fields]
    assert [field for field in fields if bool(field.variable) != bool(field.file_key)] == []


def test_every_backend_has_names_and_schemes_of_its_own() -> None:
    assert len(BY_NAME) == sum(1 + len(backend.aliases) for backend in BACKENDS)
    assert len(BY_SCHEME) == len(BACKENDS)


@pytest.mark.parametrize(
    ("backend", "environment", "message"),
    [
        ("ftp", {}, "STORAGE_BACKEND='ftp' cannot be used: use one of s3, gcs"),
        ("", {}, "STORAGE_BACKEND='' cannot be used"),
        ("s3", {"S3_ENDPOINT": "ftp://x"}, "S3_ENDPOINT='ftp://x' cannot be used: use the address of a server"),
        ("s3", {"S3_ENDPOINT": "http://x:port"}, "S3_ENDPOINT="),
        ("s3", {"S3FORCE_PATH_STYLE": "yes"}, "S3FORCE_PATH_STYLE='yes' cannot be used: use true or false"),
        ("s3", {"AWS_ACCESS_KEY_ID": "id"}, "AWS_SECRET_ACCESS_KEY='' cannot be used: set both"),
        ("s3", {"AWS_S3ID": "id"}, "AWS_S3SECRET='' cannot be used: set both"),
        ("gcs", {}, "GCS_BUCKET='' cannot be used: name the bucket"),
        ("azureblob", {}, "AZURE_STORAGE_CONNECTION_STRING='' cannot be used"),
        ("azureblob", {"AZURE_STORAGE_AUTH_MODE": "magic"}, "AZURE_STORAGE_AUTH_MODE='magic' cannot be used"),
        ("azureblob", {"AZURE_STORAGE_AUTH_MODE": "default"}, "AZURE_STORAGE_ACCOUNT_URL='' cannot be used"),
        ("aliyunoss", {"OSS_BUCKET": "b"}, "OSS_ENDPOINT='' cannot be used"),
        ("aliyunoss", {"OSS_ENDPOINT": "e.com"}, "OSS_BUCKET='' cannot be used"),
        ("local", {"LOCAL_STORAGE_DIR": "relative"}, "LOCAL_STORAGE_DIR='relative' cannot be used"),
    ],
)
def test_an_unusable_setting_stops_by_name(backend: str, environment: dict[str, str], message: str) -> None:
    with pytest.raises(Misconfigured) as stopped:
        read(backend, environment)
    assert message in str(stopped.value)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"s3Bucket": 7}'])
def test_an_unusable_file_stops_by_name(config_file: Path, content: str) -> None:
    config_file.write_text(content)
    with pytest.raises(Misconfigured, match=r"storage.json|s3Bucket"):
        read("s3", {}, config_file)


def test_a_missing_file_stops_by_name(config_file: Path) -> None:
    with pytest.raises(Misconfigured, match=r"STORAGE_BACKEND_CONFIG_PATH.*No such file"):
        read("s3", {}, config_file)


def test_a_root_that_leaves_itself_is_refused() -> None:
    with pytest.raises(Misconfigured, match="STORAGE_ROOT_DIR"):
        read("s3", {}, root="a/../b")


@pytest.mark.parametrize("broken", ["secret-without-names", "AccountName=acc", "AccountKey=c2VjcmV0"])
def test_a_broken_connection_string_is_not_shown(broken: str) -> None:
    with pytest.raises(Misconfigured, match="AZURE_STORAGE_CONNECTION_STRING") as stopped:
        read("azureblob", {"AZURE_STORAGE_CONNECTION_STRING": broken})
    assert broken not in str(stopped.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("gs://b/p", StoreSettings(GCS, "b", "p")),
        ("file:///some%20folder/", StoreSettings(LOCAL, "/some folder")),
        ("azblob://c/p/q?account_url=https://a.b", StoreSettings(AZURE, "c", "p/q", "https://a.b")),
        ("oss://b?endpoint=https://oss.example.com", StoreSettings(OSS, "b", "", "https://oss.example.com")),
        (
            "s3://b/p?endpoint=http://minio:9000&region=r",
            StoreSettings(S3, "b", "p", "http://minio:9000", {"region": "r"}),
        ),
    ],
)
def test_a_url_names_a_store(url: str, expected: StoreSettings) -> None:
    assert parse_store_url(url, {}) == expected


def test_a_url_beats_the_environment_which_fills_the_rest() -> None:
    environment = {"S3_BUCKET": "other", "S3_ENDPOINT": "http://minio:9000", "S3_REGION": "other"} | AWS_KEYS
    found = parse_store_url("s3://b?region=r", environment)
    assert (found.bucket, found.endpoint, found.options["region"]) == ("b", "http://minio:9000", "r")
    assert found.secrets["secret_access_key"] == "its-secret"


@pytest.mark.parametrize(
    "url",
    [
        *("", "b", "ftp://b", "s3:///p", "s3://b/a/../c", "s3://b#part", "gs://b?region=r", "s3://b?endpoint=x%20y"),
        *("file://host/folder", "file:///", "s3://b?secret_access_key=its-secret", "s3://id:its-secret@b/p"),
    ],
)
def test_a_url_that_names_no_store_is_refused_without_showing_secrets(url: str) -> None:
    with pytest.raises(Misconfigured) as stopped:
        parse_store_url(url, {})
    assert "its-secret" not in str(stopped.value)


def test_a_folder_without_a_scheme_is_shown_as_it_was_given_and_as_it_should_be() -> None:
    with pytest.raises(Misconfigured, match="'/var/history' cannot be used: a folder is written file:///var"):
        parse_store_url("/var/history", {})


def test_secrets_are_never_shown() -> None:
    found = read("s3", {"S3_ENDPOINT": "http://minio:9000"} | AWS_KEYS, root="r")
    assert found.describe() == "s3://ray-historyserver/r at http://minio:9000"
    shown = repr(found) + found.describe() + repr(open_store(found)) + open_store(found).describe()
    assert not any(secret in shown for secret in ("a-key", "its-secret", "its-token"))

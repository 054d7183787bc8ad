"""S3, and whatever speaks its protocol. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from raykeeper.storage.backends.backend import Backend, Environment, Field, HttpRequest, StoreSettings
from raykeeper.storage.backends.endpoints import can_hold_bucket_name, parse_endpoint
from raykeeper.storage.backends.keys import KeyVariables
from raykeeper.storage.backends.values import Values

_DEFAULT_BUCKET = "ray-historyserver"  # KubeRay's
_DEFAULT_REGION = "us-east-1"  # what S3-alikes expect where they have no regions
_OPTIONS = ("access_key_id", "secret_access_key", "session_token")
_AMAZONS = KeyVariables("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_OF_FIRST_SAMPLES = KeyVariables("AWS_S3ID", "AWS_S3SECRET", "AWS_S3TOKEN")


def _settings(values: Values, root: str, environment: Environment) -> StoreSettings:
    given = values.get("endpoint")
    endpoint = parse_endpoint(given, tls=not values.flag("disable_ssl")) if given else ""
    bucket = values.text("bucket", _DEFAULT_BUCKET)
    in_host = can_hold_bucket_name(endpoint) if endpoint else "." not in bucket  # a wildcard certificate has one level
    path_style = values.flag("path_style")
    region = values.text("region") or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    options = {"region": region or _DEFAULT_REGION}
    if not path_style and in_host:
        options["enable_virtual_host_style"] = "true"
    return StoreSettings(S3, bucket, root, endpoint, options, _secrets(environment))


def _secrets(environment: Environment) -> dict[str, str]:
    """Keys under Amazon's names, or else under those of KubeRay's first samples; never half of each."""
    is_old = not _AMAZONS.any_set(environment) and _OF_FIRST_SAMPLES.any_set(environment)
    return (_OF_FIRST_SAMPLES if is_old else _AMAZONS).read(environment, _OPTIONS)


def _bucket_request(settings: StoreSettings) -> Callable[[datetime], HttpRequest] | None:
    if "secret_access_key" not in settings.secrets:
        return None
    from raykeeper.storage.backends.s3_bucket import s3_bucket_request

    return partial(s3_bucket_request, settings)


S3 = Backend(
    name="s3",
    scheme="s3",
    fields=(
        Field("bucket", "S3_BUCKET", "s3Bucket"),
        Field("endpoint", "S3_ENDPOINT", "s3Endpoint", in_url=True),
        Field("region", "S3_REGION", "s3Region", in_url=True),
        Field("path_style", "S3FORCE_PATH_STYLE", "s3ForcePathStyle", in_url=True),
        Field("disable_ssl", "S3DISABLE_SSL", "s3DisableSSL", in_url=True),
    ),
    make_settings=_settings,
    opendal_scheme="s3",
    bucket_request=_bucket_request,
)

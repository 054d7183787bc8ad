"""Alibaba OSS, with keys, or with the role of the pod's service account (RRSA). Pure."""

from __future__ import annotations

from raykeeper.storage.backends.backend import Backend, Environment, Field, StoreSettings
from raykeeper.storage.backends.endpoints import can_hold_bucket_name, parse_endpoint
from raykeeper.storage.backends.keys import KeyVariables
from raykeeper.storage.backends.values import Given, Values

_OPTIONS = ("access_key_id", "access_key_secret", "security_token")
_KEYS = KeyVariables("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN")


def _settings(values: Values, root: str, environment: Environment) -> StoreSettings:
    """The role's variables are left to opendal, which reads them itself.

    If it were given a role, it would first assume it as RRSA says and then, with the result, assume it once more,
    which no role may do by default.
    """
    bucket = values.required("bucket", "name the bucket; it must exist").text
    region = values.get("region")
    if region is not None and values.get("endpoint") is None:
        given = Given(region.setting, f"oss-{region.text}.aliyuncs.com")
    else:
        given = values.required("endpoint", "give it, such as oss-cn-hangzhou-internal.aliyuncs.com, or the region")
    endpoint = parse_endpoint(given)
    options = {} if can_hold_bucket_name(endpoint) else {"addressing_style": "path"}
    return StoreSettings(OSS, bucket, root, endpoint, options, _KEYS.read(environment, _OPTIONS))


OSS = Backend(
    name="aliyunoss",
    scheme="oss",
    fields=(
        Field("bucket", "OSS_BUCKET", "ossBucket"),
        Field("endpoint", "OSS_ENDPOINT", "ossEndpoint", in_url=True),
        Field("region", "OSS_REGION", "ossRegion", in_url=True),
    ),
    make_settings=_settings,
    opendal_scheme="oss",
)

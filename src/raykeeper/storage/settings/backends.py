"""What each backend makes of the values it is given. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from raykeeper.errors import Misconfigured
from raykeeper.storage.settings.azure import azure_settings
from raykeeper.storage.settings.endpoints import can_hold_bucket_name, parse_endpoint
from raykeeper.storage.settings.storesettings import Backend, StoreSettings
from raykeeper.storage.settings.values import Given, Values

DEFAULT_BUCKET = "ray-historyserver"  # KubeRay's
_DEFAULT_REGION = "us-east-1"  # what S3-alikes expect where they have no regions
_FOLDER_CURE = "give the folder as an absolute path"

Environment = Mapping[str, str]


def s3_settings(values: Values, root: str, environment: Environment) -> StoreSettings:
    """S3, and whatever speaks its protocol."""
    given = values.get("endpoint")
    endpoint = parse_endpoint(given, tls=not values.flag("disable_ssl")) if given else ""
    bucket = values.text("bucket", DEFAULT_BUCKET)
    in_host = can_hold_bucket_name(endpoint) if endpoint else "." not in bucket  # a wildcard certificate has one level
    path_style = values.flag("path_style")
    region = values.text("region") or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    options = {"region": region or _DEFAULT_REGION}
    if not path_style and in_host:
        options["enable_virtual_host_style"] = "true"
    return StoreSettings("s3", bucket, root, endpoint, options, _s3_secrets(environment))


def _s3_secrets(environment: Environment) -> dict[str, str]:
    """Keys under Amazon's names, or else under those of KubeRay's first samples; never half of each."""
    aws = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    first_samples = ("AWS_S3ID", "AWS_S3SECRET", "AWS_S3TOKEN")
    is_old = not any(map(environment.get, aws)) and any(map(environment.get, first_samples))
    key_id, secret, token = first_samples if is_old else aws
    secrets = _taken(environment, access_key_id=key_id, secret_access_key=secret, session_token=token)
    _both(secrets, key_id, "access_key_id", secret, "secret_access_key")
    return secrets


def gcs_settings(values: Values, root: str, environment: Environment) -> StoreSettings:
    """Google Cloud Storage; credentials come from the surroundings, as Google's own clients find them."""
    bucket = values.required("bucket", "name the bucket; it must exist").text
    emulator = environment.get("STORAGE_EMULATOR_HOST", "")
    given = values.get("endpoint")
    if given is None and not emulator:
        return StoreSettings("gcs", bucket, root)
    endpoint = parse_endpoint(given or Given("STORAGE_EMULATOR_HOST", emulator), tls=given is not None)
    # An emulator knows no users, and asking the machine's metadata server for one would take seconds.
    anonymous = {"allow_anonymous": "true", "disable_vm_metadata": "true", "disable_config_load": "true"}
    return StoreSettings("gcs", bucket, root, endpoint, anonymous if emulator else {})


def oss_settings(values: Values, root: str, environment: Environment) -> StoreSettings:
    """Alibaba OSS, with keys, or with the role of the pod's service account (RRSA).

    The role's variables are left to opendal, which reads them itself: told of a role, it would first take it as RRSA
    says and then, with what it got, take it once more, which no role may do unless somebody allowed it to.
    """
    bucket = values.required("bucket", "name the bucket; it must exist").text
    region = values.get("region")
    if region is not None and values.get("endpoint") is None:
        given = Given(region.setting, f"oss-{region.text}.aliyuncs.com")
    else:
        given = values.required("endpoint", "give it, such as oss-cn-hangzhou-internal.aliyuncs.com, or the region")
    secrets = _taken(
        environment,
        access_key_id="ALIBABA_CLOUD_ACCESS_KEY_ID",
        access_key_secret="ALIBABA_CLOUD_ACCESS_KEY_SECRET",  # noqa: S106 - the name of a variable
        security_token="ALIBABA_CLOUD_SECURITY_TOKEN",  # noqa: S106 - the name of a variable
    )
    _both(
        secrets,
        "ALIBABA_CLOUD_ACCESS_KEY_ID",
        "access_key_id",
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
        "access_key_secret",
    )
    endpoint = parse_endpoint(given)
    options = {} if can_hold_bucket_name(endpoint) else {"addressing_style": "path"}
    return StoreSettings("aliyunoss", bucket, root, endpoint, options, secrets)


def local_settings(values: Values, root: str, environment: Environment) -> StoreSettings:  # noqa: ARG001 - as the others
    """A folder of this machine, or of a volume."""
    folder = values.required("bucket", _FOLDER_CURE)
    if not Path(folder.text).is_absolute():
        raise folder.refuse(_FOLDER_CURE)
    return StoreSettings("local", str(Path(folder.text)), root)


def _taken(environment: Environment, **names: str) -> dict[str, str]:
    """Options by opendal's names, of those variables that are set."""
    return {option: environment[name] for option, name in names.items() if environment.get(name)}


def _both(secrets: Mapping[str, str], id_name: str, id_option: str, secret_name: str, secret_option: str) -> None:
    """Stop by name when only one half of a pair of keys was given."""
    if (id_option in secrets) != (secret_option in secrets):
        absent = secret_name if id_option in secrets else id_name
        raise Misconfigured(absent, "", f"set both {id_name} and {secret_name}, or neither")


MAKERS: Mapping[Backend, Callable[[Values, str, Environment], StoreSettings]] = {
    "s3": s3_settings,
    "gcs": gcs_settings,
    "azureblob": azure_settings,
    "aliyunoss": oss_settings,
    "local": local_settings,
}

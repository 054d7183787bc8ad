"""Google Cloud Storage; credentials come from the environment, as Google's own clients find them. Pure."""

from __future__ import annotations

from raykeeper.storage.backends.backend import Backend, Environment, Field, StoreSettings
from raykeeper.storage.backends.endpoints import parse_endpoint
from raykeeper.storage.backends.values import Given, Values

# An emulator knows no users, and asking the machine's metadata server for one would take seconds.
_ANONYMOUS = {"allow_anonymous": "true", "disable_vm_metadata": "true", "disable_config_load": "true"}


def _settings(values: Values, root: str, environment: Environment) -> StoreSettings:
    bucket = values.required("bucket", "name the bucket; it must exist").text
    emulator = environment.get("STORAGE_EMULATOR_HOST", "")
    given = values.get("endpoint")
    if given is None and not emulator:
        return StoreSettings(GCS, bucket, root)
    endpoint = parse_endpoint(given or Given("STORAGE_EMULATOR_HOST", emulator), tls=given is not None)
    return StoreSettings(GCS, bucket, root, endpoint, _ANONYMOUS if emulator else {})


GCS = Backend(
    name="gcs",
    scheme="gs",
    fields=(Field("bucket", "GCS_BUCKET", "gcsBucket"), Field("endpoint", "", in_url=True)),
    make_settings=_settings,
    opendal_scheme="gcs",
)

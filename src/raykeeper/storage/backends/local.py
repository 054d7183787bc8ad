"""A folder of this machine, or of a volume. Pure."""

from __future__ import annotations

from pathlib import Path

from raykeeper.storage.backends.backend import Backend, Environment, Field, StoreSettings
from raykeeper.storage.backends.values import Values

_CURE = "give the folder as an absolute path"


def _settings(values: Values, root: str, _: Environment) -> StoreSettings:
    folder = values.required("bucket", _CURE)
    if not Path(folder.text).is_absolute():
        raise folder.refuse(_CURE)
    return StoreSettings(LOCAL, str(Path(folder.text)), root)


LOCAL = Backend(
    name="local",
    scheme="file",
    fields=(Field("bucket", "LOCAL_STORAGE_DIR", "localDir"),),
    make_settings=_settings,
    aliases=("file",),
)

"""Names under which KubeRay stores answers of the head's dashboard, and the paths that were asked. Pure.

The name is `restful__` and the path without its outer slashes, with `__` for each slash inside. Two paths may get one
name; of those that everybody asks for the right one is known.
"""

from __future__ import annotations

_PREFIX = "restful__"
_SLASH = "__"

KNOWN_PATHS = (
    "/api/serve/applications/",
    "/api/jobs/",
    "/api/v0/cluster_metadata",
    "/api/v0/placement_groups?detail=1&limit=10000",
    "/api/cluster_status?format=1",
    "/api/train/v2/runs/v1",
    "/nodes?view=summary",
    "/timezone",
)
"""What KubeRay's collector asks for by itself, and what users add to it; some end in a slash, which the name lost."""


def to_stored_name(path: str) -> str:
    """The name that KubeRay gives to the answer of a path."""
    return _PREFIX + path.strip("/").replace("/", _SLASH)


_BY_NAME = {to_stored_name(path): path for path in KNOWN_PATHS}


def to_path(name: str) -> str | None:
    """The path that was asked, as far as the name tells; None for a name that KubeRay gives to nothing."""
    if not name.startswith(_PREFIX) or name == _PREFIX:
        return None
    return _BY_NAME.get(name) or f"/{name.removeprefix(_PREFIX).replace(_SLASH, '/')}"

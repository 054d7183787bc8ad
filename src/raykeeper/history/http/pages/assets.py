"""Style sheets, scripts and icons of our own pages: the files of one folder, named after their content."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.http.responses import not_found_response

ASSETS_PREFIX = "/keeper/static/"
ASSETS_ROUTE = f"{ASSETS_PREFIX}{{digest}}/{{name}}"
_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES = {path.name: _TYPES[path.suffix] for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
"""All that is ever served from here, and as what: no name in a request becomes a path."""
_FOR_EVER = "public, max-age=31536000, immutable"
_DIGEST_CHARS = 12


def asset_path(name: str) -> str:
    """Where a page finds the file; another path once its content is another."""
    return f"{ASSETS_PREFIX}{_asset(name)[1]}/{name}"


def asset_text(name: str) -> str:
    """The file itself, for a page that stands alone."""
    return _asset(name)[0].decode()


async def get_asset(request: Request) -> Response:
    """The file. Under the digest of another version it may not be kept: that is a replica not yet replaced."""
    name = request.path_params["name"]
    if name not in _FILES:
        return not_found_response()
    content, digest = _asset(name)
    caching = _FOR_EVER if request.path_params["digest"] == digest else "no-store"
    headers = {"Cache-Control": caching, "X-Content-Type-Options": "nosniff"}
    return Response(content, headers=headers, media_type=_FILES[name])


@cache
def _asset(name: str) -> tuple[bytes, str]:
    content = (_FOLDER / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:_DIGEST_CHARS]

"""Ray's own dashboard as files: of a folder, of the installed `ray` package, which is not imported, or of our wheel.

Only files that were there at the start are served, by their names: no request is ever made into a path.
"""

from __future__ import annotations

import hashlib
import importlib.util
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from raykeeper.history.http.pages.dashboard_bar import Bar, with_bar
from raykeeper.history.http.pages.frame import page_response
from raykeeper.history.http.pages.markup import join, tag
from raykeeper.history.http.responses import not_found_response

INDEX = "index.html"
_BUILD = Path("dashboard", "client", "build")
_IN_OUR_WHEEL = Path(__file__).with_name("ray-dashboard") / "build"
"""Not in a checkout; `make wheel` puts it there."""
# Names under static/ carry a hash of their content, so a browser never needs to ask again.
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_TYPES = {".js": "text/javascript", ".map": "application/json", ".woff": "font/woff", ".woff2": "font/woff2"}

_MISSING = (
    "Ray's dashboard is not installed here, so its pages cannot be shown. All data is: the API answers below this "
    "address, and ray list, ray summary and ray job work with --address."
)
_CURE = "Install the package ray[default] next to raykeeper, or start it with --dashboard-dir."


@dataclass(frozen=True)
class DashboardFiles:
    """Files by their path in a URL, relative to a session."""

    files: dict[str, Path]

    @property
    def is_there(self) -> bool:
        return INDEX in self.files

    def is_start_page(self, path: str) -> bool:
        return (path or INDEX) == INDEX and self.is_there

    def answer(self, path: str, request: Request, bar: Bar | None = None) -> Response:
        """The file of that name. `If-None-Match` is honoured, so that a page is loaded once.

        `bar` is put into the start page.
        """
        name = path or INDEX
        file = self.files.get(name)
        if file is not None and name == INDEX:
            return _page_response(with_bar(file.read_text(), bar) if bar else file.read_text(), request)
        if file is None:
            return not_found_response() if self.is_there or path else _no_dashboard_response()
        return _file_response(name, file, request)


NO_DASHBOARD = DashboardFiles({})
"""Where the frontend of Ray is not installed."""


def find_dashboard(folder: Path | None) -> DashboardFiles:
    """The dashboard in that folder, else of the installed Ray, else of our wheel; without files where there is none."""
    places = (folder,) if folder else (_installed(), _IN_OUR_WHEEL)
    found = next((place for place in places if place and place.is_dir()), None)
    if found is None:
        return DashboardFiles({})
    root = found.resolve()
    return DashboardFiles(
        {
            path.relative_to(root).as_posix(): path
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.resolve().is_relative_to(root)
        }
    )


def _no_dashboard_response() -> Response:
    """Below the session's own address: the page that needs nothing of Ray's is beside it."""
    instead = tag("p", tag("a", "What is known of this session", href="overview"))
    return page_response("No dashboard", join([tag("p", _MISSING), tag("p", _CURE), instead]), 501, section="sessions")


def _installed() -> Path | None:
    """Found without running any of Ray, which takes a second and 100 MB."""
    spec = importlib.util.find_spec("ray")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], _BUILD)


def _page_response(page: str, request: Request) -> Response:
    etag = f'"{hashlib.sha256(page.encode()).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": _ASK_AGAIN, "X-Content-Type-Options": "nosniff"}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return HTMLResponse(page, headers=headers)


def _file_response(name: str, file: Path, request: Request) -> Response:
    stat = file.stat()
    is_named_by_content = name.startswith("static/")
    # Not by its time: in an image all files have the same, and a browser would keep the former version's start page.
    version = str(stat.st_size) if is_named_by_content else hashlib.sha256(file.read_bytes()).hexdigest()
    etag = f'"{version}"'
    caching = _FOR_EVER if is_named_by_content else _ASK_AGAIN
    headers = {"ETag": etag, "Cache-Control": caching, "X-Content-Type-Options": "nosniff"}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    kind = _TYPES.get(file.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return FileResponse(file, headers=headers, media_type=kind, stat_result=stat)

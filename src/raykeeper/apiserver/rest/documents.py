"""The OpenAPI documents at the paths that KubeRay's API server has, and a page that shows them."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Final

from aiohttp import web

from raykeeper.web.targets import Target, redirect

MERGED: Final = "kuberay_api"
DOCUMENTS: Final = ("cluster", "config", "error", "job", "job_submission", "serve", MERGED)
"""In KubeRay's form: of each protobuf file, and of all together."""
OPENAPI: Final = "openapi.json"
"""The exact one, in today's form."""
_SUFFIX: Final = ".swagger.json"
_PAGE_FILES: Final = {
    "": ("index.html", "text/html"),
    "page.js": ("page.js", "text/javascript"),
    "page.css": ("page.css", "text/css"),
}
_POLICY: Final = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


async def document_response(_: web.BaseRequest, target: Target) -> web.Response:
    """One document."""
    name = target.path.removeprefix("/swagger/")
    is_known = name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX) in DOCUMENTS
    if not is_known and name != OPENAPI:
        return _not_found()
    return web.Response(body=_file("openapi", name), content_type="application/json")


async def page_response(_: web.BaseRequest, target: Target) -> web.Response:
    """The page and what it is made of."""
    if target.path == "/swagger-ui":
        return redirect("/swagger-ui/", target.raw_query)
    found = _PAGE_FILES.get(target.path.removeprefix("/swagger-ui/"))
    if found is None:
        return _not_found()
    name, content_type = found
    headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}
    return web.Response(body=_file("page", name), content_type=content_type, charset="utf-8", headers=headers)


def _not_found() -> web.Response:
    return web.Response(status=404, text="404 page not found\n", headers={"X-Content-Type-Options": "nosniff"})


@lru_cache(maxsize=16)
def _file(folder: str, name: str) -> bytes:
    return resources.files("raykeeper.apiserver.rest").joinpath(folder, name).read_bytes()

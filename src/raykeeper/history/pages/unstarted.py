"""Clusters whose head never started: why, on a page of its own, and the newest of them on the start page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.keeper.clusters import report_of_unstarted
from raykeeper.history.kubefacts.unstarted import Unstarted, UnstartedCluster
from raykeeper.history.pages.addresses import cluster_path, report_path
from raykeeper.history.pages.frame import Crumb, page_response
from raykeeper.history.pages.markup import EMPTY, Html, tag
from raykeeper.history.pages.report import report_body
from raykeeper.history.pages.widgets import link, moment, quiet, table
from raykeeper.history.parts import Parts

TITLE = "Never started"
_MOST_ROWS = 5
_HEADERS = ("Cluster", "Namespace", "First seen")


async def get_cluster_page(request: Request, parts: Parts) -> Response:
    """Why the cluster never got a session; if it did get one since, the way to its report."""
    namespace, cluster = request.path_params["namespace"], request.path_params["cluster"]
    if session := await parts.catalog.newest_of_cluster(namespace, cluster):
        return RedirectResponse(report_path(session), 302)
    report = await report_of_unstarted(parts, namespace, cluster)
    return page_response(
        f"Cluster {cluster}", report_body(report), section="sessions", crumbs=(Crumb("Sessions", "/"),)
    )


def unstarted_section(known: Unstarted) -> Html:
    """The newest of them; nothing where there are none."""
    if not known.found:
        return EMPTY
    shown = known.found[:_MOST_ROWS]
    others = len(known.found) - len(shown)
    return tag(
        "section",
        tag("h2", TITLE),
        tag("p", "Kubernetes told of these clusters, and nothing was ever heard of their heads."),
        table(TITLE, _HEADERS, map(_row, shown), hides_caption=True),
        tag("p", quiet(f"The newest of {len(known.found):,}.")) if others else EMPTY,
    )


def _row(one: UnstartedCluster) -> tuple[str, ...]:
    return link(one.cluster, cluster_path(one.namespace, one.cluster)), one.namespace, moment(one.first_at)

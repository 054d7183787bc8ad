"""A report as one HTML file: styles inside, no script, nothing that is loaded from anywhere. It opens from a disk, in a
mail or in an archive, when the server and the cluster are long gone. Pure, but for the answers at its end.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.job import script_name
from raykeeper.history.errors import NotFound
from raykeeper.history.http.keeper_api.overview import overview_of_job, report_of
from raykeeper.history.http.pages.assets import asset_text
from raykeeper.history.http.pages.job_tabs import environment_tab, timeline_picture
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.report import REPORT_STYLES, outcome_badge, why_body
from raykeeper.history.http.pages.widgets import duration, facts, moment, quiet
from raykeeper.history.overview.model import JobOverview
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.report.model import JobOutcome, Report
from raykeeper.history.report.words import subject
from raykeeper.history.text import end_of
from raykeeper.masking import masked_value

MAX_BYTES = 1_000_000
"""Of the file: a mail takes it. What does not fit is left out, and said."""
LOG_CHARS = 20_000
"""Of the end of a driver's log."""
_JOBS_WITH_LOGS = 5
_STYLES = ("keeper.css", "job.css", *REPORT_STYLES)
_HREF = re.compile(r' href="(/[^"]*)"')
_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def export_page(report: Report, overview: JobOverview | None = None, site: str = "") -> str:
    """The whole file. `site` is the server's address, to which links lead; without it there are none."""
    report = masked_value(report)
    title = _title(report, overview)
    parts: Sequence[tuple[str, Html]] = (
        ("Why it failed", why_body(report)),
        ("Driver log", _logs(report.jobs)),
        ("Environment", _environment(overview)),
        ("Timeline", timeline_picture(overview.timeline) if overview else EMPTY),
    )
    shown, left_out, size = [_head(report, overview, title)], list[str](), len(_css())
    for name, part in parts:
        if size + len(part.encode()) > MAX_BYTES:
            left_out.append(name)
            continue
        size += len(part.encode())
        shown.append(part)
    if left_out:
        shown.append(tag("p", f"Left out, because the file would be too large: {', '.join(left_out)}.", class_="note"))
    return _document(title, _with_links(join(shown), site))


def export_name(report: Report) -> str:
    """Of the file, for whoever stores it."""
    names = (report.namespace, report.cluster, report.job or report.session)
    return f"raykeeper-{_FILE_NAME.sub('-', '-'.join(names))[:120]}.html"


def _title(report: Report, overview: JobOverview | None) -> str:
    script = script_name(overview.job.entrypoint) if overview else ""
    return script or report.job or f"Session {report.session}"


def _head(report: Report, overview: JobOverview | None, title: str) -> Html:
    job = overview.job if overview else None
    ran = duration(job.ended_at - job.started_at) if job and job.started_at and job.ended_at else ""
    known = [
        ("About", subject(report)),
        ("Started", moment(job.started_at) if job else ""),
        ("Ran", ran),
        ("Entrypoint", tag("code", job.entrypoint) if job and job.entrypoint else ""),
        ("As of", moment(report.as_of)),
    ]
    return join([tag("h1", title), tag("p", outcome_badge(report)), facts(known)])


def _logs(jobs: Sequence[JobOutcome]) -> Html:
    """The end of what drivers of failed jobs wrote."""
    logs = [(job.submission_id or job.job_id or "", job.log) for job in jobs if job.log and job.log.text]
    parts = [
        join([tag("p", quiet(f"End of {log.file}, job {name}")), tag("pre", end_of(log.text, LOG_CHARS))])
        for name, log in logs[:_JOBS_WITH_LOGS]
        if log
    ]
    return join([tag("h2", "Driver log"), *parts]) if parts else EMPTY


def _environment(overview: JobOverview | None) -> Html:
    return join([tag("h2", "Environment"), environment_tab(overview)]) if overview else EMPTY


def _with_links(body: Html, site: str) -> Html:
    """Links lead to the server, or nowhere: from a disk, a path leads to another file of that disk."""
    base = str(tag("a", href=site))[len('<a href="') : -len('"></a>')] if site else ""
    return Html(_HREF.sub(lambda found: f' href="{base}{found[1]}"' if base else "", body))


def _document(title: str, body: Html) -> str:
    css = _css()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} · Raykeeper"),
        Html(f"<style>{css}</style>"),
    )
    mark = tag("header", tag("span", "Raykeeper", class_="brand"), class_="site bare")
    return f"<!doctype html>{tag('html', head, tag('body', mark, tag('main', body, id='main')), lang='en')}"


@cache
def _css() -> str:
    return "\n".join(map(asset_text, _STYLES))


async def get_job_export(request: Request, context: SessionContext, _: History) -> Response:
    """The job's file."""
    report = await report_of(context, request.path_params["job"])
    try:
        overview = await overview_of_job(context, request.path_params["job"])
    except NotFound:  # a RayJob that never got as far as a job of Ray
        overview = None
    return _response(request, report, overview)


async def get_session_export(request: Request, context: SessionContext, _: History) -> Response:
    return _response(request, await report_of(context, None), None)


def _response(request: Request, report: Report, overview: JobOverview | None) -> Response:
    site = f"{request.url.scheme}://{request.url.netloc}"
    headers = {
        "Content-Disposition": f'attachment; filename="{export_name(report)}"',
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return Response(export_page(report, overview, site), headers=headers, media_type="text/html; charset=utf-8")

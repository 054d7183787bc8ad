"""A program that wrote its secrets everywhere: none of them is in any answer, except in log files served as files."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from itertools import product
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest
from starlette.types import ASGIApp
from typer.testing import CliRunner

from raykeeper.cli.app import app
from raykeeper.history.commands.subjects import opened_whole
from raykeeper.history.http.app import make_app
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.http.keeper_api.serving import OPERATIONS
from raykeeper.history.http.ray_api.routes import ENDPOINTS
from support.asking import Answered, ask
from support.planted_secrets import LINES, SECRETS
from support.recorded_failures import RecordedFailures
from support.stored_sessions import StoredSession

NAME = "careless-secrets"
JOB = "nightly"
PAGES_LIMIT = 40
"""Pages that links lead to; the session is small and has fewer, were it not for pages about pages."""
_LINK = re.compile(r'href="([^"#]+)"')
_NAMES = re.compile(r"\{(\w+)(?::\w+)?\}")


class Served:
    """The recorded session behind a whole server."""

    def __init__(self, app: ASGIApp, failures: RecordedFailures) -> None:
        self.app = app
        self.session = failures.sessions[NAME]
        self.stored = StoredSession(failures.store, self.session)
        names = (self.session.namespace, self.session.cluster, self.session.session)
        self.prefix = "/s/" + "/".join(quote(name, safe="") for name in names)

    async def get(self, path: str) -> Answered:
        return await ask(self.app, path)

    async def ids(self, kind: str) -> list[str]:
        """Of all nodes, actors, tasks or jobs."""
        answered = await self.get(f"{self.prefix}/api/v0/{kind}s?limit=10000")
        return [row[f"{kind}_id"] for row in answered.body["data"]["result"]["result"] if row[f"{kind}_id"]]


@asynccontextmanager
async def serving(failures: RecordedFailures) -> AsyncIterator[Served]:
    async with failures.served() as history:
        await opened_whole(history, failures.sessions[NAME])
        yield Served(make_app(history), failures)


def leaked(text: str) -> list[str]:
    """Kinds of secrets that are in a text, however it is escaped."""
    plain = unescape(text).replace("\\/", "/").replace("\\n", "\n")
    return [kind for kind, secret in SECRETS.items() if secret in plain]


def test_the_secrets_are_in_the_store(recorded_failures: RecordedFailures) -> None:
    stored = StoredSession(recorded_failures.store, recorded_failures.sessions[NAME])
    events = "".join(str(event) for events in stored.events().values() for event in events)
    logs = b"".join(log for node in stored.log_nodes() for log in stored.logs(node).values()).decode()
    jobs = str(stored.polled("/api/jobs/"))
    assert [set(SECRETS) - set(leaked(text)) for text in (events, logs, jobs)] == [set(), set(), set()]


async def test_no_endpoint_of_rays_dashboard_tells_them(recorded_failures: RecordedFailures) -> None:
    async with serving(recorded_failures) as served:
        names = {"node_id": await served.ids("node"), "actor_id": await served.ids("actor")}
        names |= {"job_id": await served.ids("job"), "job_or_submission_id": [JOB, *await served.ids("job")]}
        told = {}
        answers = [endpoint for endpoint in ENDPOINTS if "/logs" not in endpoint.path]  # logs are served as they are
        for endpoint in answers:
            [kind] = _NAMES.findall(endpoint.path) or [""]
            for name in names.get(kind, [""]):
                path = f"{served.prefix}{_NAMES.sub(name, endpoint.path)}?detail=1&limit=10000"
                told[path] = leaked((await served.get(path)).text)
    assert {path: kinds for path, kinds in told.items() if kinds} == {}
    assert len(told) > len(answers)


async def test_no_operation_of_our_api_tells_them(recorded_failures: RecordedFailures) -> None:
    async with serving(recorded_failures) as served:
        session = served.session
        report = await served.get(f"{PREFIX}/sessions/{session}/jobs/{JOB}/report")
        names = {
            "namespace": [session.namespace],
            "cluster": [session.cluster],
            "session": [session.session],
            "job": [JOB],
            "rayjob": [JOB],
            "kind": ["raycluster"],
            "name": [session.cluster],
            "node": await served.ids("node"),
            "task": await served.ids("task"),
            "fingerprint": [report.body["headline"]["fingerprint"]],
        }
        told = {}
        for operation in OPERATIONS:
            kinds = _NAMES.findall(operation.path)
            for chosen in product(*(names[kind] for kind in kinds)):
                for query in ("", "?text=connect", "?text=refused", "?q=connect"):
                    path = PREFIX + operation.path.format(**dict(zip(kinds, chosen, strict=True))) + query
                    told[path] = leaked((await served.get(path)).text)
    assert {path: kinds for path, kinds in told.items() if kinds} == {}
    assert len(told) > 4 * len(OPERATIONS)


async def test_no_page_that_links_lead_to_tells_them(recorded_failures: RecordedFailures) -> None:
    told: dict[str, list[str]] = {}
    async with serving(recorded_failures) as served:
        waiting = ["/", f"{served.prefix}/overview", f"{served.prefix}/report", f"{served.prefix}/job/{JOB}"]
        while waiting and len(told) < PAGES_LIMIT:
            path = waiting.pop(0)
            answered = await served.get(path)
            told[path] = leaked(answered.text) if _is_page(answered) else []
            links = {
                urljoin(path, unescape(link)) for link in _LINK.findall(answered.text if _is_page(answered) else "")
            }
            waiting += sorted(link for link in links if link.startswith("/") and link not in {*told, *waiting})
    assert {path: kinds for path, kinds in told.items() if kinds} == {}
    assert f"{served.prefix}/report" in told


async def test_no_page_that_people_fill_in_tells_them(recorded_failures: RecordedFailures) -> None:
    async with serving(recorded_failures) as served:
        job, whole = f"{served.session}/{JOB}", str(served.session)
        asked = [
            *(f"{served.prefix}/job/{JOB}/logs?filter={word}" for word in ("connect", "password", "key")),
            *(f"{served.prefix}/search?text={word}&ignore_case=true" for word in ("connect", "password", "BEGIN")),
            *(f"/search?text={word}&ignore_case=true" for word in ("connect", "token")),
            *(f"{path}?a={quote(whole)}&b={quote(job)}" for path in ("/compare", f"{PREFIX}/compare")),
        ]
        answers = {path: await served.get(path) for path in asked}
    assert {path: answered.status for path, answered in answers.items() if answered.status != 200} == {}
    assert {path: leaked(answered.text) for path, answered in answers.items() if leaked(answered.text)} == {}
    assert any("&lt;redacted&gt;" in answered.text for answered in answers.values())


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["terminal", "JSON"])
def test_no_report_on_a_command_line_tells_them(
    form: tuple[str, ...], recorded_failures: RecordedFailures, tmp_path: Path
) -> None:
    place = ("--store", recorded_failures.store.as_uri(), "--cache-dir", str(tmp_path))
    shown = CliRunner().invoke(app, ["report", str(recorded_failures.sessions[NAME]), *place, *form])
    assert (shown.exit_code, leaked(shown.output)) == (1, [])
    assert "<redacted>" in shown.stdout


def _is_page(answered: Answered) -> bool:
    return answered.headers.get("content-type", "").startswith("text/html")


async def test_masked_texts_say_that_they_are(recorded_failures: RecordedFailures) -> None:
    async with serving(recorded_failures) as served:
        report = (await served.get(f"{served.prefix}{PREFIX}/report")).text
        tasks = (await served.get(f"{served.prefix}/api/v0/tasks?detail=1&limit=1000")).text
        jobs = (await served.get(f"{served.prefix}/api/jobs/")).text
    assert "DB_PASSWORD=<redacted>" in report
    assert "cannot connect: DB_PASSWORD=<redacted>" in tasks
    assert "postgresql://reader:<redacted>@db.example.com:5432/sales" in jobs
    assert '"PLANTED": "<redacted>"' in jobs or '"PLANTED":"<redacted>"' in jobs


@pytest.mark.parametrize("place", ["job-driver-nightly.log", "worker"])
async def test_log_files_are_served_byte_for_byte(place: str, recorded_failures: RecordedFailures) -> None:
    async with serving(recorded_failures) as served:
        [node] = served.stored.log_nodes()
        logs = served.stored.logs(node)
        name = next(path for path, log in logs.items() if place in path and LINES["assignment"].encode() in log)
        answered = await served.get(f"{served.prefix}/api/v0/logs/file?node_id={node}&filename={quote(name)}&lines=-1")
    assert answered.content == logs[name]

"""Who may do what in V2: every mode of `--auth`, people with different rights, every verb, two namespaces."""

from __future__ import annotations

import http.client
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.rest import Json
from support.api_processes import ApiProcess
from support.auth_stage import (
    MODES,
    OWN_TOKEN,
    PEOPLE,
    RAY_KINDS,
    STANDING,
    TEAM_TOKEN,
    Stage,
    a_stage,
    an_object,
    is_allowed,
    place_of,
)

DOOMED = "doomed"
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
CONTENT_TYPE = "Content-Type"


@dataclass(frozen=True)
class Verb:
    """One of Kubernetes' verbs, as a request about a kind."""

    name: str
    method: str
    after: str = ""
    """What comes after the place of the kind."""
    content: str = ""
    success: int = 200
    writes: bool = True
    removes: bool = False
    is_granted: bool = True
    """Whether anybody of the stage has the right at all."""


VERBS = [
    Verb("get", "GET", f"/{STANDING}", writes=False),
    Verb("list", "GET", writes=False),
    # The reader may get and list, and no more.
    Verb("watch", "GET", "?watch=true&timeoutSeconds=30"),
    Verb("watch one", "GET", f"?watch=true&timeoutSeconds=30&fieldSelector=metadata.name%3D{STANDING}"),
    Verb("create", "POST", content=JSON, success=201),
    Verb("create, but only tried", "POST", "?dryRun=All", content=JSON, success=201),
    Verb("update", "PUT", f"/{STANDING}", content=JSON),
    Verb("patch", "PATCH", f"/{STANDING}", content=MERGE),
    Verb("apply", "PATCH", f"/{STANDING}?fieldManager=tests&force=true", content=APPLY),
    Verb("patch the status", "PATCH", f"/{STANDING}/status", content=MERGE, is_granted=False),
    Verb("delete", "DELETE", f"/{DOOMED}", removes=True),
    Verb("delete all", "DELETE", f"?fieldSelector=metadata.name%3D{DOOMED}", removes=True),
]


@pytest.fixture(scope="module")
def stage(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with a_stage(ray_crds, tmp_path_factory.mktemp("apiserver")) as stage:
        yield stage


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(stage: Stage, mode: str) -> Iterator[ApiProcess]:
    """One for all tests of a mode."""
    with stage.server(mode) as server:
        yield server


@pytest.fixture(scope="module")
def token_server(stage: Stage) -> Iterator[ApiProcess]:
    with stage.server("token") as server:
        yield server


def status_of(
    server: ApiProcess, headers: dict[str, str], place: str, method: str = "GET", body: str | None = None
) -> int:
    """The status of an answer. Of one that succeeds some bytes are read: a watch would go on."""
    connection = http.client.HTTPConnection(LOOPBACK, server.ports.http, timeout=60)
    try:
        connection.request(method, place, body, headers)
        response = connection.getresponse()
        response.read1()
        return response.status
    finally:
        connection.close()


def body_of(verb: Verb, kind: str, stage: Stage, namespace: str) -> str | None:
    """What a request of this verb carries."""
    if not verb.content:
        return None
    if verb.content == MERGE:
        return json.dumps({"metadata": {"annotations": {"seen": uuid.uuid4().hex}}})
    name = STANDING if verb.after.startswith("/") else f"o-{uuid.uuid4().hex[:8]}"
    body: Json = an_object(kind, name)
    if verb.method == "PUT":
        found = stage.plane.admin.get(f"{place_of(kind, namespace)}/{STANDING}")
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
    return json.dumps(body)


def tried(stage: Stage, server: ApiProcess, verb: Verb, kind: str, namespace: str, headers: dict[str, str]) -> int:
    """The status of the answer; 0 for one that says something else than what happened."""
    if verb.removes:
        stage.make(kind, namespace, DOOMED)
    place, body = place_of(kind, namespace) + verb.after, body_of(verb, kind, stage, namespace)
    own = {**headers, CONTENT_TYPE: verb.content} if verb.content else headers
    status = status_of(server, own, place, verb.method, body)
    is_gone = verb.removes and not stage.has(kind, namespace, DOOMED)
    return status if is_gone == (verb.removes and status == verb.success) else 0


@pytest.mark.parametrize("kind", RAY_KINDS)
def test_every_verb_needs_the_right_of_the_caller(kind: str, mode: str, stage: Stage, server: ApiProcess) -> None:
    wrong = []
    for person in PEOPLE:
        headers = stage.headers(mode, person)
        for verb in VERBS:
            for namespace in (stage.team, stage.other):
                is_team = namespace == stage.team
                allowed = verb.is_granted and is_allowed(person, writes=verb.writes, is_team=is_team)
                status = tried(stage, server, verb, kind, namespace, headers)
                if status != (verb.success if allowed else 403):
                    wrong.append(f"{person} {verb.name} {kind} {namespace}: {status}, allowed: {allowed}")
    assert wrong == []


@pytest.mark.parametrize("kind", RAY_KINDS)
def test_every_verb_needs_a_token_of_ours_for_the_namespace(kind: str, stage: Stage, token_server: ApiProcess) -> None:
    """The server itself has no right to write a status."""
    headers, granted = {"Authorization": f"Bearer {TEAM_TOKEN}"}, [verb for verb in VERBS if verb.is_granted]
    statuses = [
        {verb.name: tried(stage, token_server, verb, kind, place, headers) for verb in granted}
        for place in (stage.team, stage.other)
    ]
    assert statuses == [{verb.name: verb.success for verb in granted}, {verb.name: 403 for verb in granted}]


def test_every_verb_needs_somebody(stage: Stage, token_server: ApiProcess) -> None:
    for headers in ({}, {"Authorization": "Bearer made-up"}):
        for verb in VERBS:
            refused = replace(verb, success=0)  # so that what was to be removed must be there
            assert tried(stage, token_server, refused, "rayjobs", stage.team, headers) == 401, verb.name


def clusters_of(namespace: str) -> str:
    """Where RayClusters are, of a namespace or of all."""
    return place_of("rayclusters", namespace) if namespace else "/apis/ray.io/v1/rayclusters"


def list_status(server: ApiProcess, headers: dict[str, str], namespace: str) -> int:
    return status_of(server, headers, clusters_of(namespace))


def test_lists_of_all_namespaces_need_a_right_everywhere(mode: str, stage: Stage, server: ApiProcess) -> None:
    """Also with headers that would name somebody else, which count for nobody but who shows an own token."""
    lies = {"Impersonate-User": "system:admin", "Impersonate-Group": "system:masters", "X-Remote-User": "admin"}
    statuses = {
        person: [list_status(server, stage.headers(mode, person), place) for place in (stage.team, stage.other, "")]
        for person in ("nobody", "reader", "admin")
    }
    assert statuses == {"nobody": [403, 403, 403], "reader": [200, 403, 403], "admin": [200, 200, 200]}
    assert list_status(server, {}, stage.team) == 401
    assert list_status(server, {"Authorization": "Bearer made-up"}, stage.team) == 401
    assert list_status(server, {**stage.headers(mode, "nobody"), **lies}, stage.team) == 403


OTHER_WAYS = [
    "rayclusters/namespaces/$team",
    "watch/rayclusters?timeoutSeconds=1",
    "watch/rayclusters/namespaces/$team?timeoutSeconds=1",
    "watch/namespaces/$other/rayclusters?timeoutSeconds=1",
    "namespaces/$other/rayclusters?watch=true&timeoutSeconds=1",
    "namespaces/$other/rayclusters?fieldSelector=metadata.namespace%3D$team",
    "namespaces/$other/rayclusters/namespaces/$team",
    "namespaces/$other/../$team/rayclusters/../../$other/rayclusters",
]
"""To what is not in the caller's namespace, by paths that name it as well."""


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_no_other_spelling_of_a_path_gives_more_rights(way: str, mode: str, stage: Stage, server: ApiProcess) -> None:
    assert _status_of_way(stage, server, stage.headers(mode, "reader"), way) >= 300


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_no_other_spelling_of_a_path_gives_a_token_more_namespaces(
    way: str, stage: Stage, token_server: ApiProcess
) -> None:
    assert _status_of_way(stage, token_server, {"Authorization": TEAM_TOKEN}, way) >= 300


def _status_of_way(stage: Stage, server: ApiProcess, headers: dict[str, str], way: str) -> int:
    path = way.replace("$team", stage.team).replace("$other", stage.other)
    return status_of(server, headers, f"/apis/ray.io/v1/{path}")


@pytest.mark.parametrize("token", [OWN_TOKEN, TEAM_TOKEN])
@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_token_of_ours_lists_everything_or_its_namespaces(
    token: str, scheme: str, stage: Stage, token_server: ApiProcess
) -> None:
    headers = {"Authorization": f"{scheme}{token}"}
    statuses = [list_status(token_server, headers, place) for place in (stage.team, stage.other, "")]
    assert statuses == ([200, 200, 200] if token == OWN_TOKEN else [200, 403, 403])
    assert token not in token_server.output


@pytest.mark.parametrize("reviewing", ["kubernetes", "oidc"])
def test_while_the_reviewer_is_away_nobody_is_let_in(reviewing: str, stage: Stage) -> None:
    powerless = stage.plane.kubeconfig("powerless-v2", token=stage.token("nobody"))
    with replace(stage, kubeconfig=powerless).server(reviewing) as server:
        assert list_status(server, stage.headers(reviewing, "admin"), stage.team) == 503

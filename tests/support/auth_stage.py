"""Two namespaces, people with different rights in them, and API servers in every mode of `--auth`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.rest import Json, Refused
from support.api_access import (
    HEADS,
    READ,
    SERVER,
    WRITE,
    grant,
    grant_everywhere,
    group,
    make_account,
    revoke_everywhere,
    service_account,
    user,
)
from support.api_processes import ApiProcess, api_server_on
from support.identity_providers import CLIENT, ScriptedProvider, a_provider_in_a_thread

MODES = ("passthrough", "kubernetes", "kubernetes, impersonating", "oidc", "oidc, impersonating")
PEOPLE = ("nobody", "reader", "writer", "admin")
OWN_TOKEN, TEAM_TOKEN = "the-servers-own-token", "a-token-for-one-team"
CONTENT = "content.example/of-a-template"
"""What only those may see who may read it."""
STANDING = "standing"
"""The name of a compute template and of an object of each kind in both namespaces."""
RAY_KINDS = {"rayclusters": "RayCluster", "rayjobs": "RayJob", "rayservices": "RayService"}
TEMPLATES = "configmaps"


@dataclass
class Stage:
    """Two namespaces, people in the first, and a server that may do everything in both."""

    plane: ControlPlane
    team: str
    other: str
    kubeconfig: Path
    provider: ScriptedProvider
    folder: Path

    def token(self, account: str) -> str:
        return self.plane.token(self.team, account)

    def make(self, plural: str, namespace: str, name: str) -> None:
        make_object(self.plane, plural, namespace, name)

    def has(self, plural: str, namespace: str, name: str) -> bool:
        return self.plane.admin.answers(f"{place_of(plural, namespace)}/{name}")

    def headers(self, mode: str, person: str) -> dict[str, str]:
        """What a person shows to a server of this mode."""
        if mode.startswith("oidc"):
            return {"Authorization": f"Bearer {self.provider.token(sub=person, groups=[f'{person}s'])}"}
        return {"Authorization": f"Bearer {self.token(person)}"}

    @contextmanager
    def server(self, mode: str) -> Iterator[ApiProcess]:
        flags = {
            "passthrough": ["--auth=passthrough"],
            "kubernetes": ["--auth=kubernetes"],
            "kubernetes, impersonating": ["--auth=kubernetes", "--impersonate"],
            "oidc": ["--auth=oidc", *self._oidc()],
            "oidc, impersonating": ["--auth=oidc", "--impersonate", *self._oidc()],
            "token": ["--auth=token", f"--auth-token-file={self._tokens()}"],
        }[mode]
        with api_server_on(self.plane, self.folder, *flags, kubeconfig=self.kubeconfig) as server:
            yield server

    def _oidc(self) -> list[str]:
        return [
            f"--oidc-issuer-url={self.provider.url}",
            f"--oidc-client-id={CLIENT}",
            *("--oidc-username-prefix=oidc:", "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:"),
        ]

    def _tokens(self) -> Path:
        file = self.folder / "tokens"
        file.write_text(f"{OWN_TOKEN}\n{TEAM_TOKEN} {self.team}\n")
        return file


@contextmanager
def a_stage(plane: ControlPlane, folder: Path) -> Iterator[Stage]:
    mark = uuid.uuid4().hex[:6]
    team, other = f"team-{mark}", f"other-{mark}"
    with a_provider_in_a_thread() as provider:
        _prepare(plane, team, other, mark)
        kubeconfig = plane.kubeconfig("apiserver", token=plane.token(team, "apiserver"))
        yield Stage(plane, team, other, kubeconfig, provider, folder)
        _clean(plane, team, other, mark)


def is_allowed(person: str, *, writes: bool, is_team: bool, everywhere: bool = False) -> bool:
    """What the roles below say: one may read in the team's namespace, one write there, one do all everywhere."""
    if person == "admin":
        return True
    if person == "nobody" or everywhere or not is_team:
        return False
    return person == "writer" or not writes


def place_of(plural: str, namespace: str) -> str:
    """Where Kubernetes has the objects of a kind."""
    group = "/api/v1" if plural == TEMPLATES else "/apis/ray.io/v1"
    return f"{group}/namespaces/{namespace}/{plural}"


def an_object(plural: str, name: str) -> Json:
    """An object of this API as Kubernetes has it."""
    if plural == TEMPLATES:
        amounts = {"cpu": "1", "memory": "1", "memory_unit": "Gi", "gpu": "1", "gpu_accelerator": CONTENT}
        return {"metadata": {"name": name, "labels": {"ray.io/config-type": "compute-template"}}, "data": amounts}
    template = {"spec": {"containers": [{"name": "ray-head", "image": "ray"}]}}
    cluster = {"headGroupSpec": {"rayStartParams": {}, "template": template}}
    specs: dict[str, Json] = {
        "rayclusters": cluster,
        "rayjobs": {"entrypoint": "true", "rayClusterSpec": cluster},
        "rayservices": {"serveConfigV2": "applications: []", "rayClusterConfig": cluster},
    }
    metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": "kuberay-apiserver"}}
    return {"apiVersion": "ray.io/v1", "kind": RAY_KINDS[plural], "metadata": metadata, "spec": specs[plural]}


def make_object(plane: ControlPlane, plural: str, namespace: str, name: str) -> None:
    """An object of this API, where there is none yet."""
    try:
        plane.admin.post(place_of(plural, namespace), an_object(plural, name))
    except Refused as refusal:
        if refusal.status != HTTPStatus.CONFLICT:
            raise


def make_standing(plane: ControlPlane, namespace: str) -> None:
    """An object of every kind; the RayCluster is ready, so that its head is asked."""
    for plural in (TEMPLATES, *RAY_KINDS):
        make_object(plane, plural, namespace, STANDING)
    plane.admin.patch(f"{place_of('rayclusters', namespace)}/{STANDING}/status", {"status": {"state": "ready"}})


def _prepare(plane: ControlPlane, team: str, other: str, mark: str) -> None:
    for namespace in (team, other):
        make_namespace(plane, namespace)
        make_standing(plane, namespace)
    for name in ("apiserver", *PEOPLE):
        make_account(plane, team, name)
    readers = [service_account(team, "reader"), user("oidc:reader")]
    writers = [service_account(team, "writer"), group("oidc:writers")]
    admins = [service_account(team, "admin"), user("oidc:admin")]
    grant(plane, team, "reader", READ, *readers)
    grant(plane, team, "writer", [*WRITE, HEADS], *writers)
    grant_everywhere(plane, f"admin-{mark}", [*WRITE, HEADS], *admins)
    grant_everywhere(plane, f"server-{mark}", SERVER, service_account(team, "apiserver"))


def _clean(plane: ControlPlane, team: str, other: str, mark: str) -> None:
    for name in (f"admin-{mark}", f"server-{mark}"):
        revoke_everywhere(plane, name)
    for namespace in (team, other):
        remove_namespace(plane, namespace)

"""Every way to log in to the real API server, and following credentials that are replaced while we run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.pki import Authority
from raykeeper.api.meta import JSON
from raykeeper.errors import Misconfigured, Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.errors import Unauthorized
from raykeeper.kube.http.requests import Request
from support.clocks import ManualClock
from support.connect_proxy import connect_proxy
from support.kube_clients import connected

WHO_AM_I = Request(
    "POST",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "ask who I am",
    b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}',
)


async def user_of(kube: Kube) -> str:
    """Whom the server takes us for."""
    answer = await kube.send(WHO_AM_I)
    return str(json.loads(answer.body)["status"]["userInfo"]["username"])


Written = Callable[..., Path]


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, tmp_path: Path) -> Written:
    """Writes a kubeconfig for the control plane with the given user section and additions to the cluster's."""

    def write(user: JSON, **cluster: str) -> Path:
        config = yaml.safe_load(control_plane.admin_kubeconfig.read_text())
        config["users"][0]["user"] = user
        config["clusters"][0]["cluster"] |= {name.replace("_", "-"): value for name, value in cluster.items()}
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(config))
        return path

    return write


@pytest.fixture
def new_token(control_plane: ControlPlane, namespace: str) -> Callable[[str], str]:
    """Makes a service account and a token for it."""

    def make(account: str) -> str:
        control_plane.admin.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": account}})
        return control_plane.token(namespace, account)

    return make


class Plugin:
    """An exec plugin that prints the credential it was last given, and counts its runs."""

    def __init__(self, folder: Path) -> None:
        self._credential = folder / "credential.json"
        self._runs = folder / "runs"
        script = folder / "plugin"
        script.write_text(
            f"#!{sys.executable}\nimport pathlib\n"
            f"pathlib.Path({str(self._runs)!r}).open('a').write('x')\n"
            f"print(pathlib.Path({str(self._credential)!r}).read_text())\n"
        )
        script.chmod(0o755)

    @property
    def runs(self) -> int:
        return len(self._runs.read_text())

    def give(self, **status: str) -> None:
        credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
        self._credential.write_text(json.dumps(credential))


EXEC: JSON = {
    "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


async def test_a_client_certificate_from_files_beside_the_kubeconfig(
    control_plane: ControlPlane, kubeconfig: Written, tmp_path: Path
) -> None:
    Authority.load(control_plane.keys.authority).issue("ann", ["strangers"]).write(tmp_path, "ann")
    async with connected(kubeconfig({"client-certificate": "ann.crt", "client-key": "ann.key"})) as kube:
        assert await user_of(kube) == "ann"


async def test_an_unverified_server_by_wish(control_plane: ControlPlane, kubeconfig: Written) -> None:
    path = kubeconfig({})
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"] = {"server": control_plane.server, "insecure-skip-tls-verify": True}
    path.write_text(yaml.safe_dump(config))
    async with connected(path) as kube:
        assert (await kube.send(Request("GET", "/version", "version"))).status == 200


async def test_a_name_of_the_servers_certificate_that_is_not_its_address(kubeconfig: Written) -> None:
    async with connected(kubeconfig({}, tls_server_name="kubernetes.default.svc")) as kube:
        assert (await kube.send(Request("GET", "/version", "version"))).status == 200


async def test_an_exec_plugin_runs_again_when_its_token_is_refused(
    kubeconfig: Written, plugin: Plugin, new_token: Callable[[str], str], namespace: str
) -> None:
    plugin.give(token="worthless by now")
    connection = await load_connection(kubeconfig(EXEC))
    plugin.give(token=new_token("one"))
    async with connected(connection) as client:
        assert await user_of(client) == f"system:serviceaccount:{namespace}:one"
        assert await user_of(client) == f"system:serviceaccount:{namespace}:one"
    assert plugin.runs == 2


async def test_a_token_of_an_exec_plugin_is_replaced_when_it_expires(
    kubeconfig: Written, plugin: Plugin, new_token: Callable[[str], str], namespace: str
) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    end = (clock.now() + timedelta(minutes=5)).isoformat()
    plugin.give(token=new_token("one"), expirationTimestamp=end)
    connection = await load_connection(kubeconfig(EXEC), clock=clock)
    plugin.give(token=new_token("two"))
    async with connected(connection) as client:
        assert await user_of(client) == f"system:serviceaccount:{namespace}:one"
        clock.advance(300)
        assert await user_of(client) == f"system:serviceaccount:{namespace}:two"


async def test_a_client_certificate_of_an_exec_plugin_is_replaced_when_it_ends(
    control_plane: ControlPlane, kubeconfig: Written, plugin: Plugin
) -> None:
    authority = Authority.load(control_plane.keys.authority)
    clock = ManualClock(now=datetime.now(UTC))
    one, two = authority.issue("one", lifetime=timedelta(minutes=5)), authority.issue("two")
    plugin.give(clientCertificateData=one.certificate.decode(), clientKeyData=one.key.decode())
    connection = await load_connection(kubeconfig(EXEC), clock=clock)
    plugin.give(clientCertificateData=two.certificate.decode(), clientKeyData=two.key.decode())
    async with connected(connection) as client:
        assert await user_of(client) == "one"
        clock.advance(300)
        assert await user_of(client) == "two"


async def test_the_failure_of_an_exec_plugin_is_told_with_its_words(kubeconfig: Written, tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text("#!/bin/sh\necho 'session expired, run: cloud login' >&2\nexit 3\n")
    script.chmod(0o755)
    path = kubeconfig(EXEC)
    with pytest.raises(
        Misconfigured, match=r"exec plugin ./plugin failed .*session expired, run: cloud login"
    ) as caught:
        await load_connection(path)
    assert str(path) in str(caught.value)


async def test_an_exec_plugin_that_says_nothing_useful_is_named(kubeconfig: Written, plugin: Plugin) -> None:
    plugin.give(token="t", expirationTimestamp="tomorrow")
    with pytest.raises(Misconfigured, match="expirationTimestamp 'tomorrow' is not a time"):
        await load_connection(kubeconfig(EXEC))
    plugin.give()
    with pytest.raises(Misconfigured, match="has neither a token nor a certificate"):
        await load_connection(kubeconfig(EXEC))


async def test_a_missing_exec_plugin_is_named_with_its_hint(kubeconfig: Written) -> None:
    settings = {**EXEC["exec"], "command": "no-such-plugin", "installHint": "install it from the shop"}
    with pytest.raises(Misconfigured, match=r"no-such-plugin cannot be started \(.*\); install it from the shop"):
        await load_connection(kubeconfig({"exec": settings}))


async def test_a_token_file_is_followed(
    kubeconfig: Written, tmp_path: Path, new_token: Callable[[str], str], namespace: str
) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    (tmp_path / "token").write_text(new_token("one"))
    connection = await load_connection(kubeconfig({"tokenFile": "token"}), clock=clock)
    async with connected(connection) as client:
        assert await user_of(client) == f"system:serviceaccount:{namespace}:one"
        (tmp_path / "token").write_text(new_token("two") + "\n")
        clock.advance(61)
        assert await user_of(client) == f"system:serviceaccount:{namespace}:two"


@pytest.fixture
def pod_folder(control_plane: ControlPlane, tmp_path: Path, namespace: str) -> Path:
    """What Kubernetes mounts into a pod of the namespace."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(control_plane.token(namespace))
    (folder / "ca.crt").write_bytes(control_plane.keys.authority.certificate.read_bytes())
    (folder / "namespace").write_text(namespace)
    return folder


def in_a_pod(control_plane: ControlPlane) -> dict[str, str]:
    port = str(control_plane.ports.apiserver)
    return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}


async def test_a_pod_is_its_service_account(control_plane: ControlPlane, pod_folder: Path, namespace: str) -> None:
    connection = await load_connection(environment=in_a_pod(control_plane), service_account=pod_folder)
    assert connection.namespace == namespace
    async with connected(connection) as client:
        assert await user_of(client) == f"system:serviceaccount:{namespace}:default"


async def test_a_pods_token_is_read_again_after_a_minute(
    control_plane: ControlPlane, pod_folder: Path, new_token: Callable[[str], str], namespace: str
) -> None:
    clock = ManualClock(now=datetime.now(UTC))
    connection = await load_connection(environment=in_a_pod(control_plane), service_account=pod_folder, clock=clock)
    async with connected(connection) as client:
        (pod_folder / "token").write_text(new_token("rotated"))
        assert await user_of(client) == f"system:serviceaccount:{namespace}:default"
        clock.advance(60)
        assert await user_of(client) == f"system:serviceaccount:{namespace}:rotated"


async def test_a_pods_token_is_read_again_at_once_when_it_is_refused(
    control_plane: ControlPlane, pod_folder: Path, namespace: str
) -> None:
    good = (pod_folder / "token").read_text()
    (pod_folder / "token").write_text(control_plane.expired_token(namespace))
    connection = await load_connection(environment=in_a_pod(control_plane), service_account=pod_folder)
    async with connected(connection) as client:
        with pytest.raises(Unauthorized, match=r"the service account token from .* expired at"):
            await user_of(client)
        (pod_folder / "token").write_text(good)
        assert await user_of(client) == f"system:serviceaccount:{namespace}:default"


@pytest.mark.parametrize("credentials", [None, "ann:se-cret"])
async def test_requests_and_streams_go_by_the_proxy_of_the_kubeconfig(
    control_plane: ControlPlane, kubeconfig: Written, credentials: str | None, namespace: str
) -> None:
    async with connect_proxy(credentials) as proxy:
        login = f"{credentials}@" if credentials else ""
        path = kubeconfig({"token": control_plane.token(namespace)}, proxy_url=proxy.url.replace("//", f"//{login}"))
        async with connected(path) as client:
            assert await user_of(client) == f"system:serviceaccount:{namespace}:default"
            assert [chunk async for chunk in client.stream("/version", {}, silence=5)]
        assert proxy.targets == [control_plane.server.removeprefix("https://")] * 2


async def test_a_proxy_that_refuses_is_named_without_its_password(kubeconfig: Written) -> None:
    async with connect_proxy("ann:right") as proxy:
        path = kubeconfig({}, proxy_url=proxy.url.replace("//", "//ann:wrong@"))
        async with connected(path) as client:
            with pytest.raises(Unavailable, match=f"the proxy {proxy.url} answered 407") as caught:
                await user_of(client)
    assert "wrong" not in str(caught.value)

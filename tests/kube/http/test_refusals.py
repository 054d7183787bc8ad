"""Whatever stands between us and the API server is told in one sentence that names the cause."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.faults import TcpProxy
from bed.pki import Authority, kubeconfig_text
from bed.ports import free_port
from raykeeper.api.meta import ObjectKey
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.errors import Forbidden, Unauthorized
from raykeeper.kube.http.unanswered import Patience
from raykeeper.kube.resources import CONFIG_MAPS
from support.kube_clients import connected

KEY = ObjectKey("default", "kube-root-ca.crt")
READ = f"get configmaps {KEY}"


async def refusal(kubeconfig: Path) -> RaykeeperError:
    """The error that a simple read ends with."""
    async with connected(kubeconfig) as kube:
        with pytest.raises(RaykeeperError) as caught:
            await kube.get(CONFIG_MAPS, KEY)
    assert "\n" not in str(caught.value)
    return caught.value


async def test_rbac_says_who_may_not_do_what(control_plane: ControlPlane) -> None:
    error = await refusal(control_plane.kubeconfig("ann", groups=["strangers"]))
    assert isinstance(error, Forbidden)
    assert str(error) == (
        f'{READ}: 403 Forbidden: configmaps "kube-root-ca.crt" is forbidden: User "ann" '
        'cannot get resource "configmaps" in API group "" in the namespace "default"'
    )


async def test_an_expired_token_is_named_with_its_end(control_plane: ControlPlane, namespace: str) -> None:
    path = control_plane.kubeconfig(token=control_plane.expired_token(namespace))
    error = await refusal(path)
    assert isinstance(error, Unauthorized)
    assert f"401 Unauthorized: the token from kubeconfig {path}, context bed expired at 20" in str(error)


async def test_an_expired_client_certificate_is_named_with_its_end(control_plane: ControlPlane) -> None:
    path = control_plane.kubeconfig("ann", lifetime=timedelta(hours=-1))
    error = await refusal(path)
    assert isinstance(error, Unauthorized)
    assert f"the client certificate from kubeconfig {path}, context bed expired at 20" in str(error)


async def test_an_unknown_token_is_named_by_its_source(control_plane: ControlPlane) -> None:
    path = control_plane.kubeconfig(token="unheard-of")
    assert str(await refusal(path)).endswith(
        f"the token from kubeconfig {path}, context bed is not accepted by the server"
    )


async def test_a_wrong_ca_is_named_by_its_source(control_plane: ControlPlane, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig_text(control_plane.server, Authority.create("another").pair.certificate, token="t"))
    error = await refusal(path)
    assert isinstance(error, Unavailable)
    assert str(error) == (
        f"kubernetes API at {control_plane.server}: {READ}: its certificate is signed by "
        f"an unknown authority: the CA in kubeconfig {path}, context bed does not match"
    )


async def test_a_certificate_for_another_name_is_named(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = yaml.safe_load(control_plane.admin_kubeconfig.read_text())
    config["clusters"][0]["cluster"]["tls-server-name"] = "elsewhere.example"
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    assert "its certificate is not made for elsewhere.example" in str(await refusal(path))


async def test_a_server_that_does_not_listen_is_named(control_plane: ControlPlane) -> None:
    server = f"https://127.0.0.1:{free_port('127.0.0.1')}"
    error = await refusal(control_plane.kubeconfig(server=server))
    assert isinstance(error, Unavailable)
    assert str(error) == (f"kubernetes API at {server}: {READ}: connection refused: nothing listens there")


async def test_a_host_that_does_not_exist_is_named(control_plane: ControlPlane) -> None:
    error = await refusal(control_plane.kubeconfig(server="https://kubernetes.invalid:6443"))
    assert str(error).endswith("the name kubernetes.invalid is not known")


async def test_plain_http_on_a_tls_port_is_refused_in_words(control_plane: ControlPlane) -> None:
    error = await refusal(control_plane.kubeconfig(server=control_plane.server.replace("https", "http")))
    assert "400 Bad Request: Client sent an HTTP request to an HTTPS server" in str(error)


async def test_silence_before_and_after_connecting_is_told_apart(control_plane: ControlPlane) -> None:
    with TcpProxy("127.0.0.1", control_plane.ports.apiserver) as proxy:
        path = control_plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")
        async with connected(path, patience=Patience(connect=0.3, read=0.5)) as kube:
            await kube.get(CONFIG_MAPS, KEY)
            proxy.stall()
            with pytest.raises(Unavailable, match=r"no answer in 0.5 s"):
                await kube.get(CONFIG_MAPS, KEY)
            with pytest.raises(Unavailable, match=r"no connection within 0.3 s"):
                await kube.get(CONFIG_MAPS, KEY)
            proxy.flow()


async def test_a_cut_connection_is_told_and_the_next_request_succeeds(control_plane: ControlPlane) -> None:
    with TcpProxy("127.0.0.1", control_plane.ports.apiserver) as proxy:
        async with connected(control_plane.kubeconfig(server=f"https://127.0.0.1:{proxy.port}")) as kube:
            await kube.get(CONFIG_MAPS, KEY)
            proxy.refuse()
            with pytest.raises(Unavailable, match="connection refused"):
                await kube.get(CONFIG_MAPS, KEY)
            proxy.accept()
            await kube.get(CONFIG_MAPS, KEY)

"""Where a connection is read from, and what is said about one that cannot be used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bed.pki import Authority
from raykeeper.api.meta import JSON
from raykeeper.errors import Misconfigured
from raykeeper.kube.connect.connection import Connection, load_connection


def a_kubeconfig(path: Path, *, cluster: JSON | None = None, user: JSON | None = None, server: str = "") -> Path:
    """A file with one context of the file's own name."""
    content = {
        "current-context": path.stem,
        "contexts": [{"name": path.stem, "context": {"cluster": "c", "user": "u", "namespace": f"{path.stem}-ns"}}],
        "clusters": [{"name": "c", "cluster": {"server": server or f"https://{path.stem}:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """The folder that Kubernetes mounts into a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token\n")
    (folder / "ca.crt").write_bytes(Authority.create().pair.certificate)
    (folder / "namespace").write_text("ray-system")
    return folder


IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def authorization(connection: Connection) -> str | None:
    return (await connection.credentials.current()).headers.get("Authorization")


async def test_an_explicit_file_comes_first_then_the_environment_then_the_pod_then_home(
    tmp_path: Path, pod: Path
) -> None:
    explicit, named = a_kubeconfig(tmp_path / "explicit.yaml"), a_kubeconfig(tmp_path / "named.yaml")
    home = a_kubeconfig(tmp_path / ".kube" / "config")
    everything = {"KUBECONFIG": str(named), "HOME": str(tmp_path), **IN_A_POD}

    async def server(kubeconfig: Path | None, environment: dict[str, str]) -> str:
        return (await load_connection(kubeconfig, environment=environment, service_account=pod)).server

    assert await server(explicit, everything) == "https://explicit:6443"
    assert await server(None, everything) == "https://named:6443"
    assert await server(None, {**everything, "KUBECONFIG": ""}) == "https://10.96.0.1:443"
    assert await server(None, {"HOME": str(tmp_path)}) == f"https://{home.stem}:6443"


async def test_a_pod_connects_with_its_service_account(pod: Path) -> None:
    connection = await load_connection(environment=IN_A_POD, service_account=pod)
    assert connection.namespace == "ray-system"
    assert await authorization(connection) == "Bearer pod-token"


async def test_an_ipv6_api_server_gets_brackets(pod: Path) -> None:
    environment = {**IN_A_POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert (await load_connection(environment=environment, service_account=pod)).server == "https://[fd00::1]:443"


def test_a_pod_never_pays_for_the_official_client(pod: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
asyncio.run(load_connection(environment={IN_A_POD!r}, service_account=Path({str(pod)!r})))
assert not any(name.partition(".")[0] == "kubernetes" for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


async def test_nothing_found_names_all_that_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as caught:
        await load_connection(environment={"HOME": str(tmp_path), **IN_A_POD}, service_account=tmp_path / "none")
    assert f"{tmp_path}/.kube/config" in str(caught.value)
    assert f"{tmp_path}/none/token" in str(caught.value)


async def test_several_files_are_merged_and_a_context_is_chosen_by_name(tmp_path: Path) -> None:
    files = [a_kubeconfig(tmp_path / "one.yaml"), a_kubeconfig(tmp_path / "two.yaml"), tmp_path / "missing.yaml"]
    environment = {"KUBECONFIG": ":".join(map(str, files))}
    assert (await load_connection(environment=environment)).namespace == "one-ns", "the first counts, as with kubectl"
    assert (await load_connection(context="two", environment=environment)).namespace == "two-ns"


async def test_proxy_and_tls_server_name_of_the_cluster_are_taken(tmp_path: Path) -> None:
    cluster = {"proxy-url": "http://proxy:3128", "tls-server-name": "kubernetes"}
    connection = await load_connection(a_kubeconfig(tmp_path / "a.yaml", cluster=cluster), environment={})
    assert (connection.proxy, connection.tls_server_name) == ("http://proxy:3128", "kubernetes")


async def test_the_proxy_of_the_environment_is_used_unless_the_cluster_names_one(tmp_path: Path) -> None:
    environment = {"HTTPS_PROXY": "http://everyone:3128"}
    plain = a_kubeconfig(tmp_path / "a.yaml")
    own = a_kubeconfig(tmp_path / "b.yaml", cluster={"proxy-url": "http://own:3128"})
    assert (await load_connection(plain, environment=environment)).proxy == "http://everyone:3128"
    assert (await load_connection(own, environment=environment)).proxy == "http://own:3128"


async def test_a_token_file_beside_the_kubeconfig_is_read_without_its_newline(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    path = a_kubeconfig(tmp_path / "a.yaml", user={"tokenFile": "token", "token": "inline"})
    assert await authorization(await load_connection(path)) == "Bearer from-file"


async def test_a_password_and_an_impersonated_user_are_shown(tmp_path: Path) -> None:
    user = {"username": "ann", "password": "secret", "as": "bob", "as-uid": "42"}
    connection = await load_connection(a_kubeconfig(tmp_path / "a.yaml", user=user))
    headers = (await connection.credentials.current()).headers
    assert headers == {"Authorization": "Basic YW5uOnNlY3JldA==", "Impersonate-User": "bob", "Impersonate-Uid": "42"}


async def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path / "a.yaml")
    path.write_text(path.read_text().replace("user: u", "user: ''"))
    assert await authorization(await load_connection(path)) is None


def missing(_: Path) -> None:
    """No file at all."""


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


def written(**parts: JSON | str) -> Callable[[Path], object]:
    return lambda path: a_kubeconfig(path, **parts)  # type: ignore[arg-type] # the table below spells them right


@pytest.mark.parametrize(
    ("write", "cause"),
    [
        (missing, "there is no such file"),
        (text(""), "it is YAML, but not a kubeconfig"),
        (text("just words"), "it is YAML, but not a kubeconfig"),
        (text("{"), "it is not YAML"),
        (text("{clusters: []}"), "it has no current-context; name one"),
        (text("{current-context: x}"), "it has no context named 'x'"),
        (written(server="ftp://x"), "its server 'ftp://x' is not an http(s) URL"),
        (written(cluster={"certificate-authority": "ca.pem"}), "certificate-authority .*/ca.pem cannot be read"),
        (
            written(cluster={"certificate-authority-data": "??"}),
            "its certificate-authority is not text, or not in base64",
        ),
        (written(cluster={"certificate-authority-data": "Zm9v"}), "its certificates or key are broken"),
        (written(cluster={"proxy-url": "socks5://p"}), "only http:// and https:// proxies"),
        (written(user={"tokenFile": "gone"}), "tokenFile .*/gone cannot be read"),
        (written(user={"auth-provider": {"name": "gcp"}}), "auth-provider 'gcp' is no longer supported"),
        (written(user={"as": "bob", "as-groups": ["x"]}), "as-groups"),
    ],
)
async def test_an_unusable_kubeconfig_is_one_line_naming_file_and_cause(
    write: Callable[[Path], object], cause: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.yaml"
    write(path)
    with pytest.raises(Misconfigured, match=cause.replace("(", r"\(").replace(")", r"\)")) as caught:
        await load_connection(path, environment={})
    assert "\n" not in str(caught.value)


async def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="it has no context named 'other'"):
        await load_connection(a_kubeconfig(tmp_path / "a.yaml"), "other")

"""The control plane is real, quick, and can be harmed in the ways its methods say."""

from __future__ import annotations

import socket
import time
from datetime import timedelta

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import ControlPlaneSettings
from bed.errors import BedError
from bed.fixtures import NewControlPlane
from bed.keys import client_tls
from bed.rest import Json, Refused, Rest
from bed.waiting import wait_until

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def make_config_maps(plane: ControlPlane, prefix: str, count: int) -> None:
    for number in range(count):
        plane.admin.post(CONFIG_MAPS, {"metadata": {"name": f"{prefix}-{number}"}})


def first_page(plane: ControlPlane) -> Json:
    metadata: Json = plane.admin.get(f"{CONFIG_MAPS}?limit=2")["metadata"]
    return metadata


def watch(plane: ControlPlane, resource_version: str) -> str:
    """What a watch from `resource_version` brings within a second."""
    return plane.admin.raw("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={resource_version}").decode()


def next_page(plane: ControlPlane, token: str) -> Json:
    return plane.admin.get(f"{CONFIG_MAPS}?limit=2&continue={token}")


def test_it_is_ready_within_seconds(own_control_plane: ControlPlane) -> None:
    own_control_plane.down()
    started = time.monotonic()
    own_control_plane.up()
    assert own_control_plane.kubectl("get", "--raw", "/readyz") == "ok"
    assert time.monotonic() - started < 120  # about 4 s when nothing else runs


def test_a_killed_api_server_comes_back_with_its_data_on_the_same_port(own_control_plane: ControlPlane) -> None:
    make_config_maps(own_control_plane, "kept", 1)
    own_control_plane.apiserver.kill()
    with pytest.raises(ConnectionRefusedError):
        own_control_plane.admin.get(CONFIG_MAPS)
    own_control_plane.apiserver.start()
    own_control_plane.wait_ready()
    assert own_control_plane.admin.answers(f"{CONFIG_MAPS}/kept-0")


def test_a_killed_etcd_comes_back_with_its_data(own_control_plane: ControlPlane) -> None:
    make_config_maps(own_control_plane, "kept-by-etcd", 1)
    own_control_plane.etcd.kill()
    wait_until("no longer ready", lambda: not own_control_plane.admin.answers("/readyz"))
    own_control_plane.etcd.start()
    own_control_plane.wait_ready()
    assert own_control_plane.admin.answers(f"{CONFIG_MAPS}/kept-by-etcd-0")


def test_a_paused_api_server_takes_connections_and_does_not_answer(own_control_plane: ControlPlane) -> None:
    own_control_plane.apiserver.pause()
    address = (own_control_plane.settings.address, own_control_plane.ports.apiserver)
    try:
        with socket.create_connection(address, timeout=1) as connection:
            connection.sendall(b"\x16\x03\x01")
            with pytest.raises(TimeoutError):
                connection.recv(1)
    finally:
        own_control_plane.apiserver.resume()
    own_control_plane.wait_ready()


def test_a_compaction_alone_is_hidden_by_the_watch_cache(own_control_plane: ControlPlane) -> None:
    make_config_maps(own_control_plane, "hidden", 3)
    before = first_page(own_control_plane)
    make_config_maps(own_control_plane, "hidden-later", 1)
    own_control_plane.compact_etcd()
    assert "hidden-later-0" in watch(own_control_plane, before["resourceVersion"])
    assert next_page(own_control_plane, before["continue"])["items"]


def test_watches_and_continue_tokens_from_before_a_forgotten_history_get_410(own_control_plane: ControlPlane) -> None:
    make_config_maps(own_control_plane, "forgotten", 3)
    before = first_page(own_control_plane)
    make_config_maps(own_control_plane, "forgotten-later", 1)
    own_control_plane.forget_history()
    assert '"code":410' in watch(own_control_plane, before["resourceVersion"])
    with pytest.raises(Refused, match="410"):
        next_page(own_control_plane, before["continue"])


def test_without_the_watch_cache_a_compaction_alone_gives_410(new_control_plane: NewControlPlane) -> None:
    plane = new_control_plane(ControlPlaneSettings(watch_cache=False))
    make_config_maps(plane, "uncached", 3)
    before = first_page(plane)
    make_config_maps(plane, "uncached-later", 1)
    plane.compact_etcd()
    assert '"code":410' in watch(plane, before["resourceVersion"])
    with pytest.raises(Refused, match="410"):
        next_page(plane, before["continue"])


def test_a_user_without_rights_is_refused_by_name(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.kubeconfig("jane", ["developers"])
    with pytest.raises(BedError, match='User "jane" cannot list resource "secrets"'):
        control_plane.kubectl("get", "secrets", kubeconfig=kubeconfig)


def test_an_expired_certificate_is_not_accepted(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.kubeconfig(lifetime=timedelta(minutes=-1))
    with pytest.raises(BedError, match="Unauthorized"):
        control_plane.kubectl("get", "nodes", kubeconfig=kubeconfig)


def test_tokens_of_service_accounts_are_good_until_they_expire(control_plane: ControlPlane, namespace: str) -> None:
    def who_am_i(token: str) -> str:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        api = Rest(control_plane.server, client_tls(control_plane.keys), {"Authorization": f"Bearer {token}"})
        answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        return str(answer["status"]["userInfo"]["username"])

    assert who_am_i(control_plane.token(namespace)) == f"system:serviceaccount:{namespace}:default"
    with pytest.raises(Refused, match="401"):
        who_am_i(control_plane.expired_token(namespace))


def test_a_daemon_that_ends_while_starting_shows_its_log(new_control_plane: NewControlPlane) -> None:
    with pytest.raises(BedError, match="unknown flag: --no-such-flag"):
        new_control_plane(ControlPlaneSettings(extra_flags={"kube-apiserver": ("--no-such-flag",)}))

"""Connections can be harmed in the ways the proxies say, and go on when they are told to stop."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from bed.control_plane import ControlPlane
from bed.faults import Fault, HttpFaults, TcpProxy
from bed.faults.http import remote_user
from bed.faults.rules import first_strike, status_body
from bed.keys import client_tls
from bed.rest import Refused, Rest
from bed.waiting import wait_until


class EchoServer:
    """Sends back what it gets."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
            except ConnectionError:
                return


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    server = EchoServer()
    with TcpProxy("127.0.0.1", server.port) as proxy:
        yield proxy
    server.listener.close()


def connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def echoed(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    answer = b""
    while len(answer) < len(data) and (part := connection.recv(65536)):
        answer += part
    return answer


def test_the_proxy_forwards_both_ways(proxy: TcpProxy) -> None:
    with connect(proxy) as connection:
        assert echoed(connection, b"x" * 300_000) == b"x" * 300_000


def test_a_cut_resets_open_connections_and_takes_new_ones(proxy: TcpProxy) -> None:
    with connect(proxy) as old:
        assert echoed(old, b"one") == b"one"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            old.recv(1)
    with connect(proxy) as new:
        assert echoed(new, b"two") == b"two"


def test_refusing_lasts_until_it_accepts_again(proxy: TcpProxy) -> None:
    with connect(proxy) as old:
        assert echoed(old, b"one") == b"one"
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            old.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.accept()
    with connect(proxy) as new:
        assert echoed(new, b"two") == b"two"


def test_a_stall_holds_everything_back_and_loses_nothing(proxy: TcpProxy) -> None:
    with connect(proxy) as connection:
        assert echoed(connection, b"one") == b"one"
        proxy.stall()
        connection.sendall(b"two")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        proxy.flow()
        connection.settimeout(10)
        assert connection.recv(10) == b"two"


def test_a_delay_is_added_each_way(proxy: TcpProxy) -> None:
    proxy.delay_seconds = 0.1
    with connect(proxy) as connection:
        started = time.monotonic()
        assert echoed(connection, b"one") == b"one"
        assert time.monotonic() - started >= 0.2


def test_a_byte_limit_slows_a_transfer_down(proxy: TcpProxy) -> None:
    proxy.bytes_per_second = 100_000
    with connect(proxy) as connection:
        started = time.monotonic()
        assert echoed(connection, b"x" * 30_000) == b"x" * 30_000
        assert time.monotonic() - started >= 0.3


def test_the_proxy_counts_its_connections(proxy: TcpProxy) -> None:
    with connect(proxy) as connection:
        echoed(connection, b"one")
        assert (proxy.connections, proxy.accepted) == (1, 1)
    wait_until("closed", lambda: proxy.connections == 0)


def test_a_fault_strikes_as_often_as_it_may_and_only_what_fits() -> None:
    faults = [Fault(429, method="GET", path="/pods", times=1), Fault(500, path="/pods", probability=0.5)]
    strikes = [
        first_strike(faults, "GET", "/api/v1/pods?limit=1", 0.7),
        first_strike(faults, "GET", "/api/v1/pods", 0.7),
        first_strike(faults, "GET", "/api/v1/pods", 0.4),
        first_strike(faults, "GET", "/api/v1/nodes", 0.0),
    ]
    assert strikes == [faults[0], None, faults[1], None]
    assert [fault.hits for fault in faults] == [1, 1]


def test_an_injected_error_looks_like_the_api_servers_own() -> None:
    body = status_body(Fault(429, retry_after=3))
    assert (body["reason"], body["code"], body["details"]) == ("TooManyRequests", 429, {"retryAfterSeconds": 3})


def test_user_and_groups_are_read_from_the_certificate() -> None:
    subject = ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "jane"),))
    assert remote_user({"subject": subject}) == [
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "b"),
        ("X-Remote-User", "jane"),
    ]


@pytest.fixture
def http_faults(control_plane: ControlPlane) -> Iterator[HttpFaults]:
    with HttpFaults(control_plane) as faults:
        yield faults


@pytest.fixture
def api(control_plane: ControlPlane, http_faults: HttpFaults) -> Rest:
    """The API server through the faulty proxy, as administrator by client certificate."""
    return Rest(http_faults.server, client_tls(control_plane.keys, control_plane.keys.admin))


def test_certificates_and_tokens_keep_their_user_through_the_proxy(
    control_plane: ControlPlane, namespace: str, http_faults: HttpFaults
) -> None:
    jane = control_plane.kubeconfig("jane", ["developers"], server=http_faults.server)
    account = control_plane.kubeconfig(token=control_plane.token(namespace), server=http_faults.server)
    assert "jane" in control_plane.kubectl("auth", "whoami", kubeconfig=jane)
    whoami = control_plane.kubectl("auth", "whoami", kubeconfig=account)
    assert f"system:serviceaccount:{namespace}:default" in whoami


def test_an_injected_429_comes_with_retry_after_and_then_ends(api: Rest, http_faults: HttpFaults) -> None:
    fault = http_faults.inject(Fault(429, method="GET", path="/namespaces", retry_after=1, times=1))
    with pytest.raises(Refused, match="429") as refused:
        api.get("/api/v1/namespaces")
    assert refused.value.headers["Retry-After"] == "1"
    assert api.get("/api/v1/namespaces")["items"]
    assert fault.hits == 1


def test_a_lost_answer_hides_that_the_server_acted(api: Rest, namespace: str, http_faults: HttpFaults) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    http_faults.inject(Fault(method="POST", times=1))
    with pytest.raises(ConnectionError):
        api.post(config_maps, {"metadata": {"name": "never-arrived"}})
    assert not api.answers(f"{config_maps}/never-arrived")
    http_faults.inject(Fault(method="POST", times=1, after_acting=True))
    with pytest.raises(ConnectionError):
        api.post(config_maps, {"metadata": {"name": "answer-lost"}})
    assert api.answers(f"{config_maps}/answer-lost")


def test_a_watch_streams_through_the_proxy(
    control_plane: ControlPlane, api: Rest, namespace: str, http_faults: HttpFaults
) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    version = api.get(config_maps)["metadata"]["resourceVersion"]
    watch = http.client.HTTPSConnection("127.0.0.1", http_faults.port, timeout=20, context=api.tls)
    watch.request("GET", f"{config_maps}?watch=1&resourceVersion={version}")
    response = watch.getresponse()
    api.post(config_maps, {"metadata": {"name": "streamed"}})
    assert b'"name":"streamed"' in response.readline()
    watch.close()

"""A collector that has less time than promised, as in an evicted pod: it sends what it has before it waits for Ray."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import pytest

from bed.ports import free_port
from bed.waiting import wait_until
from collector.ray_folders import NODE_A, SESSION, a_port_file, a_session, written
from raykeeper.layout.keys import SessionId
from support.collector_processes import CollectorProcess, ended
from support.ray_event_batches import EventMaker, body_of
from support.stored_sessions import StoredSession

OUTPUT = "worker-1-01000000-7.out"


def test_events_and_output_are_sent_at_once_although_ray_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, port = a_session(tmp_path / "ray"), free_port()
    (session / "sockets").mkdir(exist_ok=True)
    a_port_file(session, NODE_A)
    flags = ["--ray-cluster-name=demo", f"--events-port={port}", f"--store-url=file://{tmp_path}/store"]
    flags += ["--metrics-addr=127.0.0.1:0", "--user-log-interval=1h", "--grace-period=40s"]
    collector = CollectorProcess(tmp_path / "collector.log", flags, {"RAY_TMP_ROOT": str(tmp_path / "ray")})
    stored = StoredSession(tmp_path / "store", SessionId("local", "demo", SESSION))
    with socket.socket(socket.AF_UNIX) as raylet, ended(collector):
        monkeypatch.chdir(session)  # the whole path is longer than the kernel takes
        raylet.bind("sockets/raylet")
        raylet.listen()
        collector.start().wait_for("node found")
        post(port, body_of(EventMaker(session=SESSION, node=NODE_A).events(3)))
        written(session / "logs" / OUTPUT, b"said at last\n")
        assert stored.events() == {}
        collector.terminate()
        wait_until("its events are there", lambda: len(stored.events().get(NODE_A, [])) == 3)
        wait_until("the output is there", lambda: stored.logs(NODE_A).get(OUTPUT) == b"said at last\n")
        assert collector.is_alive  # it still hears Ray out


def post(port: int, body: bytes) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/events", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200

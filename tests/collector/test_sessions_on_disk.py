"""Sessions and nodes are known from what Ray leaves on disk, whatever its version."""

from __future__ import annotations

import os
import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collector.ray_folders import NODE_A, NODE_B, SESSION, a_port_file, a_session, raylet_text, written
from raykeeper.collector import raylet_socket
from raykeeper.collector.node_ids import parse_hook_file, parse_raylet_log
from raykeeper.collector.sessions import NodeAppeared, RayletGone, SessionAppeared, SessionEvent, SessionWatch
from support.clocks import ManualClock

OTHER = "session_2026-11-16_01-00-00_000000_7"


class Scene:
    """A folder, a watch over it, and what the watch told."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = ManualClock()
        self.watch = SessionWatch(root, self.clock)
        self.events: list[SessionEvent] = []
        self.watch.listen(self.events.append)

    def poll(self, after: float = 1.0) -> SessionWatch:
        self.clock.advance(after)
        self.watch.poll()
        return self.watch

    def nodes(self, session: str = SESSION) -> list[str]:
        found = next(s for s in self.poll().sessions() if s.name == session)
        return [node.node_id for node in found.incarnations]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "ray")


def test_a_folder_that_is_not_there_yet_has_no_sessions(scene: Scene) -> None:
    assert scene.poll().sessions() == ()
    assert scene.watch.current_session() is None


def test_the_current_session_is_the_target_of_the_link_though_its_path_is_another_containers(scene: Scene) -> None:
    a_session(scene.root, OTHER)
    a_session(scene.root, SESSION)
    assert scene.poll().current_session() == SESSION
    assert [session.name for session in scene.watch.sessions()] == [SESSION, OTHER]


def test_without_the_link_the_directory_that_changed_last_is_current(scene: Scene) -> None:
    old, new = a_session(scene.root, OTHER), a_session(scene.root, SESSION)
    os.utime(old, (1000, 1000))
    os.utime(new, (2000, 2000))
    (scene.root / "session_latest").unlink()
    assert scene.poll().current_session() == SESSION


def test_port_files_name_the_nodes_in_the_order_they_appeared(scene: Scene) -> None:
    session = a_session(scene.root)
    a_port_file(session, NODE_B, at=2000)
    a_port_file(session, NODE_A, at=1000)
    a_port_file(session, NODE_A, "gcs_server", at=1001)
    assert scene.nodes() == [NODE_A, NODE_B]
    assert scene.watch.node_of(SESSION) == NODE_B
    moments = [scene.watch.node_at(SESSION, second * 10**9) for second in (500, 1500, 2500)]
    assert moments == [NODE_A, NODE_A, NODE_B]
    assert [node.role for node in scene.watch.sessions()[0].incarnations] == ["head", None]


def test_in_ray_2_52_which_has_no_port_files_the_raylets_log_names_the_node(scene: Scene) -> None:
    session = a_session(scene.root)
    by_socket = '{"10.0.0.7:/tmp/ray/session_x/sockets/plasma_store": {"metrics_agent_port": 64651}}'
    written(session / "ports_by_node.json", by_socket.encode())
    assert scene.nodes() == []
    written(session / "logs/raylet.out", raylet_text(NODE_A))
    assert scene.nodes() == [NODE_A]


def test_the_raylets_own_logs_name_the_nodes_and_their_numbers(scene: Scene) -> None:
    session = a_session(scene.root)
    written(session / "logs/raylet.out", raylet_text(NODE_A))
    assert scene.nodes() == [NODE_A]
    later = raylet_text(NODE_B).replace(b"20:10:29", b"21:10:29")
    written(session / "logs/raylet.1.out", later)
    assert scene.nodes() == [NODE_A, NODE_B]
    assert [node.log_index for node in scene.watch.sessions()[0].incarnations] == [0, 1]


@pytest.mark.parametrize("has_port_file", [True, False])
@pytest.mark.parametrize(("zone_hours", "number"), [(-8, ""), (5.75, ".1"), (0, "")])
def test_a_node_started_when_its_raylet_said_so_whatever_time_zone_rays_image_has(
    scene: Scene, zone_hours: float, number: str, has_port_file: bool
) -> None:
    said = datetime(2026, 11, 15, 20, 10, 29, tzinfo=UTC)
    said_at = (said - timedelta(hours=zone_hours)).timestamp()
    session = a_session(scene.root)
    if number:
        written(session / "logs/raylet.out", b"another one, long ago\n")
    written(session / f"logs/raylet{number}.err", b"", said_at - 1)
    written(session / f"logs/raylet{number}.out", raylet_text(NODE_A), said_at + 3600)
    if has_port_file:
        a_port_file(session, NODE_A, at=int(said_at) + 2)
    assert scene.nodes() == [NODE_A]
    (node,) = scene.watch.sessions()[0].incarnations
    assert node.appeared_ns == said_at * 1e9


def test_a_node_id_that_comes_late_to_an_existing_log_is_found(scene: Scene) -> None:
    log = written(a_session(scene.root) / "logs/raylet.out", b"starting\n")
    assert scene.nodes() == []
    log.write_bytes(b"starting\n" + raylet_text(NODE_A))
    assert scene.nodes() == [NODE_A]


@pytest.mark.parametrize("name", ["alibabacloud_raylet_node_id", "raylet_node_id"])
def test_a_post_start_hook_may_name_the_node_of_the_current_session(scene: Scene, name: str) -> None:
    a_session(scene.root, OTHER)
    a_session(scene.root, SESSION)
    written(scene.root / name, NODE_A.encode() + b"\n")
    assert scene.nodes(SESSION) == [NODE_A]
    assert scene.nodes(OTHER) == []


def test_what_a_hook_wrote_before_the_session_began_is_an_earlier_sessions_node(scene: Scene) -> None:
    a_session(scene.root, OTHER)
    session = a_session(scene.root)
    for path in (session, session / "logs"):
        os.utime(path, (2000, 2000))
    written(scene.root / "raylet_node_id", NODE_A.encode(), at=1990)
    assert scene.nodes() == []
    written(scene.root / "raylet_node_id", NODE_B.encode(), at=2010)
    assert scene.nodes() == [NODE_B]


def test_what_a_hook_wrote_is_the_first_sessions_node_whenever_that_was(scene: Scene) -> None:
    session = a_session(scene.root)
    for path in (session, session / "logs"):
        os.utime(path, (2000, 2000))
    written(scene.root / "raylet_node_id", NODE_A.encode(), at=1990)
    assert scene.nodes() == [NODE_A]


def test_the_log_of_a_post_start_hook_names_the_node_it_waited_for() -> None:
    text = f'Mon raylet not start\nMon raylet started: "{NODE_B}" => {NODE_A}\n'
    assert parse_hook_file(text) == NODE_A
    assert parse_hook_file("Mon raylet not start\n") is None
    assert parse_hook_file(f"{text}Tue raylet not start\n") is None  # it waits for the next one


def test_a_raylet_log_with_an_impossible_time_names_none() -> None:
    text = raylet_text(NODE_A).decode()
    assert parse_raylet_log(text) is not None
    assert parse_raylet_log(text.replace("2026-11-15", "2026-31-15")) is None


def test_listeners_hear_each_session_and_node_once_and_late_ones_too(scene: Scene) -> None:
    session = a_session(scene.root)
    scene.poll()
    a_port_file(session, NODE_A)
    scene.poll()
    scene.poll(after=500)
    assert [type(event) for event in scene.events] == [SessionAppeared, NodeAppeared]
    late: list[SessionEvent] = []
    scene.watch.listen(late.append)
    assert [type(event) for event in late] == [SessionAppeared, NodeAppeared]


def test_a_node_that_appears_in_a_long_quiet_session_is_found(scene: Scene) -> None:
    session = a_session(scene.root)
    a_port_file(session, NODE_A, at=1000)
    scene.poll()
    scene.poll(after=500)
    a_port_file(session, NODE_B)
    assert scene.nodes() == [NODE_A, NODE_B]


def test_a_raylet_that_stops_listening_is_told_once(scene: Scene) -> None:
    session = a_session(scene.root)
    a_port_file(session, NODE_A)
    (session / "sockets").mkdir()
    with socket.socket(socket.AF_UNIX) as raylet:
        here = os.open(session / "sockets", os.O_RDONLY)
        raylet.bind(f"/proc/self/fd/{here}/raylet")
        os.close(here)
        raylet.listen()
        raylet.setblocking(False)
        scene.poll()
        assert scene.watch.raylet_listens is True
        with pytest.raises(BlockingIOError):
            raylet.accept()  # nobody came: the raylet does not notice that it is watched
    for _ in range(3):
        scene.poll()
    gone = [event for event in scene.events if isinstance(event, RayletGone)]
    assert [event.node_id for event in gone] == [NODE_A]


def test_another_users_raylet_is_found_in_the_list_of_sockets(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    session = a_session(scene.root)
    sockets = written(
        scene.root / "unix", b"Num RefCount ...\n0: 2 0 1 /tmp/ray/%s/sockets/raylet\n" % SESSION.encode()
    )
    monkeypatch.setattr(raylet_socket, "_BOUND_SOCKETS", sockets)

    class ForbiddenSocket(socket.socket):
        def connect(self, address: object) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "socket", ForbiddenSocket)
    written(session / "sockets/raylet", b"")
    assert scene.poll().raylet_listens is True
    sockets.write_bytes(b"Num RefCount ...\n")
    assert scene.poll().raylet_listens is False
    assert isinstance(scene.events[-1], RayletGone)


def test_a_session_directory_that_is_removed_is_forgotten(scene: Scene) -> None:
    session = a_session(scene.root)
    scene.poll()
    shutil.rmtree(session)
    assert scene.poll().sessions() == ()

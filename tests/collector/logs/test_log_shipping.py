"""Log files arrive in the bucket byte for byte, through rotation, truncation, deletion and restarts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from collector.logs.shipping import Scene
from collector.ray_folders import NODE_A, NODE_B, SESSION, a_port_file, a_session, raylet_text, written
from raykeeper.collector.logs import losses, tracker
from raykeeper.collector.logs.losses import Losses

WORKER = "worker-" + "f" * 56 + "-01000000-12.out"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    await scene.shipper.close()


async def test_every_file_below_logs_arrives_whole(scene: Scene) -> None:
    texts = {WORKER: b"hello\n" * 100_000, "serve/replica_a.log": b"x", "old/empty.txt": b"", "a/b/c.log": b"\0\xff"}
    for path, text in texts.items():
        written(scene.logs / path, text)
    await scene.tick()
    assert {path: scene.bucket.text(path) for path in scene.bucket.logs()} == texts
    assert scene.shipper.unsent_bytes == 0


async def test_only_what_is_new_is_sent(scene: Scene) -> None:
    file = written(scene.logs / WORKER, b"one\n")
    await scene.tick()
    with file.open("ab") as output:
        output.write(b"two\n")
    await scene.tick()
    await scene.tick()
    assert [[(f.offset, f.length) for f in index.frames] for index in scene.bucket.indexes] == [[(0, 4)], [(4, 4)]]
    assert scene.bucket.text(WORKER) == b"one\ntwo\n"


async def test_user_output_does_not_wait_for_the_components_turn(scene: Scene) -> None:
    await scene.tick()
    written(scene.logs / WORKER, b"user")
    written(scene.logs / "raylet.out", b"component")
    await scene.tick(after=5)
    assert set(scene.bucket.logs()) == {WORKER}
    await scene.tick(after=90)
    assert set(scene.bucket.logs()) == {WORKER, "raylet.out"}


async def test_much_component_text_comes_after_a_minute_and_little_after_a_minute_and_a_half(scene: Scene) -> None:
    file = written(scene.logs / "raylet.out", b"start")
    await scene.tick()
    file.write_bytes(b"start" + b"a little")
    await scene.tick(after=65)
    assert len(scene.bucket.packs) == 1
    file.write_bytes(b"start" + b"a lot   " * 20_000)
    await scene.tick(after=1)
    assert len(scene.bucket.packs) == 1
    await scene.tick(after=30)
    assert len(scene.bucket.packs) == 2


async def test_a_rotated_file_goes_on_under_its_new_name_and_nothing_is_sent_twice(scene: Scene) -> None:
    log = written(scene.logs / "raylet.out", b"first ")
    await scene.tick()
    with log.open("ab") as output:
        output.write(b"generation")
    log.rename(scene.logs / "raylet.out.1")
    written(log, b"second")
    await scene.tick()
    assert scene.bucket.text("raylet.out.1") == b"first generation"
    assert scene.bucket.text("raylet.out") == b"second"
    sent = sum(frame.length for index in scene.bucket.indexes for frame in index.frames)
    assert sent == len(b"first generationsecond")


async def test_a_rename_alone_is_told(scene: Scene) -> None:
    log = written(scene.logs / "raylet.out", b"first")
    await scene.tick()
    log.rename(scene.logs / "raylet.out.1")
    await scene.tick()
    assert set(scene.bucket.logs()) == {"raylet.out.1"}
    assert scene.bucket.text("raylet.out.1") == b"first"


@pytest.mark.parametrize("after", [b"new", b"as long!", b"longer than before"])
async def test_a_truncated_file_begins_a_new_generation_however_long_it_is_by_then(scene: Scene, after: bytes) -> None:
    log = written(scene.logs / "dashboard.log", b"as long.", at=1000)
    await scene.tick()
    log.write_bytes(after)
    await scene.tick()
    await scene.tick()
    assert scene.bucket.text("dashboard.log") == after
    old = next(iter(scene.bucket.indexes)).frames[0].generation
    assert scene.bucket.logs()["dashboard.log"].generation != old


async def test_bytes_cut_off_before_they_were_read_are_counted_and_told(scene: Scene) -> None:
    log = written(scene.logs / "dashboard.log", b"sent")
    await scene.tick()
    log.write_bytes(b"sent" + b"unsent")
    await scene.look(after=31)
    log.write_bytes(b"new")
    await scene.tick()
    await scene.tick()
    assert scene.shipper.lost_bytes == len(b"unsent")
    gaps = [gap for index in scene.bucket.indexes for gap in index.gaps]
    assert [(gap.path, gap.offset, gap.length) for gap in gaps] == [("dashboard.log", 4, 6)]


async def test_a_file_deleted_while_the_bucket_was_down_is_read_from_its_descriptor(scene: Scene) -> None:
    log = written(scene.logs / WORKER, b"said and gone")
    await scene.look()
    log.unlink()
    await scene.tick()
    await scene.tick()
    assert scene.bucket.text(WORKER) == b"said and gone"
    assert scene.shipper.lost_bytes == 0
    assert len(scene.shipper._tracker.open_files) == 0


async def test_what_was_written_after_the_last_look_is_read_though_the_file_is_gone(scene: Scene) -> None:
    log = written(scene.logs / WORKER, b"seen")
    await scene.tick()
    with log.open("ab") as output:
        output.write(b", then unseen")
    log.unlink()
    await scene.tick(after=5)
    assert scene.bucket.text(WORKER) == b"seen, then unseen"


async def test_the_bucket_is_told_that_a_file_is_gone(scene: Scene) -> None:
    log = written(scene.logs / WORKER, b"said")
    await scene.tick()
    log.unlink()
    for _ in range(3):
        await scene.tick()
    assert scene.bucket.logs()[WORKER].is_deleted
    assert scene.bucket.text(WORKER) == b"said"
    assert len(scene.bucket.packs) == 2


async def test_deleted_files_are_held_up_to_the_limit_and_the_oldest_is_given_up_first(tmp_path: Path) -> None:
    scene = Scene(tmp_path, deleted_bytes_max=2500)
    for number in range(4):
        file = written(scene.logs / f"worker-{number}.out", b"%d" % number * 1000)
        await scene.look(after=1)
        file.unlink()
    await scene.look(after=1)
    assert scene.shipper.lost_bytes == 2000
    await scene.tick()
    assert {path for path, log in scene.bucket.logs().items() if log.frames} == {"worker-2.out", "worker-3.out"}
    given_up = scene.bucket.logs()["worker-0.out"]
    assert [(gap.length, gap.reason) for gap in given_up.gaps] == [
        (1000, "deleted, and the limit of deleted files kept open was reached")
    ]
    await scene.shipper.close()


async def test_a_file_rewritten_in_place_keeps_its_last_version_only(scene: Scene) -> None:
    state = written(scene.logs / "debug_state.txt", b"a long first version")
    await scene.tick()
    state.write_bytes(b"the second")
    await scene.tick()
    os.utime(state)
    await scene.tick()
    assert scene.bucket.text("debug_state.txt") == b"the second"
    assert len(scene.bucket.packs) == 2
    assert len({frame.generation for index in scene.bucket.indexes for frame in index.frames}) == 1


async def test_a_file_of_another_name_that_is_rewritten_in_place_is_recognised_by_the_third_time(scene: Scene) -> None:
    state = scene.logs / "status.txt"
    for number in range(8):
        state.write_bytes(b"%d: all is well" % number)
        await scene.tick()
    stored = scene.bucket.logs()["status.txt"]
    assert stored.is_whole
    assert len(stored.frames) == 4 + 1
    assert scene.bucket.text("status.txt") == b"7: all is well"


async def test_after_a_restart_it_goes_on_where_it_was(scene: Scene) -> None:
    log = written(scene.logs / WORKER, b"before ")
    written(scene.logs / "debug_state.txt", b"state")
    await scene.tick()
    await scene.restart()
    with log.open("ab") as output:
        output.write(b"after")
    await scene.tick()
    assert scene.bucket.text(WORKER) == b"before after"
    assert [f.offset for f in scene.bucket.indexes[-1].frames] == [7]


async def test_a_crash_between_put_and_remembering_repeats_bytes_of_the_same_generation(scene: Scene) -> None:
    written(scene.logs / WORKER, b"some bytes")
    await scene.look(after=100)
    kinds = scene.shipper._due_kinds()
    parcel = await scene.shipper._in_thread(scene.shipper._next_parcel, kinds)
    assert parcel is not None
    await scene.bucket.put(scene.shipper._key(parcel.group), parcel.data)
    await scene.restart()
    await scene.tick()
    assert len(scene.bucket.packs) == 2
    assert len({frame.generation for index in scene.bucket.indexes for frame in index.frames}) == 1
    assert scene.bucket.text(WORKER) == b"some bytes"


async def test_a_torn_line_of_positions_costs_that_line_alone(scene: Scene) -> None:
    written(scene.logs / "worker-1.out", b"one")
    await scene.tick()
    positions = scene.settings.positions_file
    assert positions is not None
    positions.write_bytes(positions.read_bytes() + b'["' + SESSION.encode())
    await scene.restart()
    written(scene.logs / "worker-2.out", b"two")
    await scene.tick()
    assert [[f.path for f in index.frames] for index in scene.bucket.indexes] == [["worker-1.out"], ["worker-2.out"]]


async def test_files_are_filed_under_the_session_they_lie_in(scene: Scene) -> None:
    other = "session_2026-11-16_01-00-00_000000_7"
    written(scene.logs / WORKER, b"first session")
    await scene.tick()
    later = a_session(scene.root, other)
    a_port_file(later, NODE_B)
    written(later / "logs" / WORKER, b"second session")
    with (scene.logs / WORKER).open("ab") as output:
        output.write(b", its end")
    await scene.tick()
    assert scene.bucket.text(WORKER, NODE_A, SESSION) == b"first session, its end"
    assert scene.bucket.text(WORKER, NODE_B, other) == b"second session"


async def test_files_of_two_nodes_in_one_directory_are_told_apart(scene: Scene) -> None:
    written(scene.logs / "raylet.out", raylet_text(NODE_A))
    written(scene.logs / "worker-old.out", b"of the first")
    await scene.tick()
    written(scene.logs / "raylet.1.out", raylet_text(NODE_B).replace(b"20:10:29", b"21:10:29"))
    a_port_file(scene.session, NODE_B)
    await scene.look()
    written(scene.logs / "worker-new.out", b"of the second")
    written(scene.logs / "dashboard_agent.1.log", b"agent of the second")
    with (scene.logs / "worker-old.out").open("ab") as output:
        output.write(b", its end")
    await scene.tick()
    assert set(scene.bucket.logs(NODE_A)) == {"raylet.out", "worker-old.out"}
    assert set(scene.bucket.logs(NODE_B)) == {"raylet.1.out", "worker-new.out", "dashboard_agent.1.log"}
    assert scene.bucket.text("worker-old.out", NODE_A) == b"of the first, its end"


async def test_files_found_at_the_start_belong_to_the_node_that_lived_when_they_were_last_written(scene: Scene) -> None:
    a_port_file(scene.session, NODE_B, at=2000)
    written(scene.logs / "worker-old.out", b"first", at=1500)
    written(scene.logs / "worker-new.out", b"second", at=2500)
    await scene.tick()
    assert set(scene.bucket.logs(NODE_A)) == {"worker-old.out"}
    assert set(scene.bucket.logs(NODE_B)) == {"worker-new.out"}


async def test_a_file_waits_a_little_for_its_node_and_is_then_filed_under_the_pod(tmp_path: Path) -> None:
    scene = Scene(tmp_path, node_wait_seconds=30)
    next(scene.session.glob("*_port_*")).unlink()
    written(scene.logs / WORKER, b"early")
    await scene.tick(after=1)
    assert scene.bucket.packs == {}
    await scene.tick(after=31)
    assert scene.bucket.text(WORKER, "unknown-pod-1") == b"early"
    await scene.shipper.close()


async def test_links_are_not_followed_and_sockets_are_left_alone(scene: Scene, tmp_path: Path) -> None:
    secret = written(tmp_path / "secret", b"token")
    (scene.logs / "worker-link.out").symlink_to(secret)
    (scene.logs / "folder").symlink_to(tmp_path)
    os.mkfifo(scene.logs / "worker-fifo.out")
    await scene.tick()
    assert scene.bucket.packs == {}


async def test_a_file_that_is_swapped_for_a_link_after_it_was_listed_is_not_read(scene: Scene, tmp_path: Path) -> None:
    secret = written(tmp_path / "secret", b"token" * 10)
    scene.settings = replace(scene.settings, descriptors_max=0)
    await scene.restart()
    log = written(scene.logs / WORKER, b"innocent")
    await scene.look()
    log.unlink()
    log.symlink_to(secret)
    await scene.shipper.ship()
    await scene.tick()
    assert all(frame.length == 0 for index in scene.bucket.indexes for frame in index.frames)


async def test_a_name_that_is_not_text_arrives_escaped_and_once(scene: Scene) -> None:
    written(scene.logs / os.fsdecode(b"worker-\xff.out"), b"odd")
    await scene.tick()
    await scene.restart()
    await scene.tick()
    assert scene.bucket.text("worker-\\xff.out") == b"odd"
    assert len(scene.bucket.packs) == 1


async def test_one_fast_file_does_not_keep_others_waiting(tmp_path: Path) -> None:
    scene = Scene(tmp_path, pack_bytes=300 << 10)
    written(scene.logs / "worker-flood.out", os.urandom(4 << 20))
    small = [f"worker-{number}.out" for number in range(50)]
    for name in small:
        written(scene.logs / name, b"a line\n")
    await scene.tick()
    assert {frame.path for frame in scene.bucket.indexes[0].frames} >= set(small)
    assert len(scene.bucket.packs) > 5
    await scene.shipper.close()


async def test_an_hour_of_an_idle_head_makes_few_packs(scene: Scene) -> None:
    raylet = written(scene.logs / "raylet.out", b"start\n")
    await scene.tick()
    scene.bucket.packs.clear()
    for second in range(0, 3600, 5):
        if second % 10 == 0:
            written(scene.logs / "debug_state.txt", b"state at %d" % second)
            raylet.write_bytes(raylet.read_bytes() + b"a line at %d\n" % second)
        await scene.tick(after=5)
    assert 30 <= len(scene.bucket.packs) <= 45


async def test_an_unreadable_file_is_counted_once_and_does_not_hold_up_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: str, flags: int, *rest: int, **where: int) -> int:
        if str(path).endswith("worker-secret.out"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, *rest, **where)

    monkeypatch.setattr(os, "open", refuse)  # the tests may run as root, whom no permission stops
    written(scene.logs / "worker-secret.out", b"secret")
    written(scene.logs / "worker-plain.out", b"plain")
    for _ in range(4):
        await scene.tick()
    assert set(scene.bucket.logs()) == {"worker-plain.out"}
    assert scene.shipper.unsent_bytes == len(b"secret")
    assert scene.metrics.registry.get_sample_value("raykeeper_collector_log_read_errors_total") == 1
    monkeypatch.undo()
    await scene.tick()
    assert scene.bucket.text("worker-secret.out") == b"secret"


async def test_metrics_show_what_is_followed_sent_and_waiting(scene: Scene) -> None:
    def sample(name: str) -> float | None:
        return scene.metrics.registry.get_sample_value(f"raykeeper_collector_log_{name}")

    written(scene.logs / WORKER, b"12345")
    await scene.look()
    assert (sample("files"), sample("unsent_bytes"), sample("bytes_total")) == (1, 5, 0)
    await scene.tick()
    assert (sample("packs_total"), sample("unsent_bytes"), sample("bytes_total")) == (1, 0, 5)


async def test_how_long_bytes_have_waited_is_known(scene: Scene) -> None:
    await scene.tick()
    written(scene.logs / "raylet.out", b"12345")
    await scene.look(after=31)
    scene.clock.advance(20)
    assert (scene.shipper.unsent_bytes, scene.shipper.oldest_unsent_seconds) == (5, 20)
    await scene.tick()
    assert (scene.shipper.unsent_bytes, scene.shipper.oldest_unsent_seconds) == (0, 0)


async def test_more_names_than_are_followed_are_told_and_cost_outer_files_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracker, "MAX_FOLLOWED", 20)
    written(scene.logs / WORKER, b"honest")
    for number in range(30):
        written(scene.logs / f"many/{number}/{number}.log", b"x")
        written(scene.logs / f"more/{number}.log", b"x")
    for _ in range(3):
        await scene.tick()
    shipped = set(scene.bucket.logs())
    assert scene.bucket.text(WORKER) == b"honest"
    assert len(shipped) < 20
    assert scene.shipper.file_count < 20
    gauge = "raykeeper_collector_log_folders_left_out"
    assert (scene.metrics.registry.get_sample_value(gauge) or 0) > 0
    assert [line.message for line in caplog.records].count("too many log files, some are left out") == 1


async def test_sessions_of_the_past_leave_room_for_the_current_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker, "MAX_FOLLOWED", 20)
    for number in range(50):
        written(scene.root / "session_2020-01-01_00-00-00_000000_1" / "logs" / f"{number}.log", b"x")
    await scene.tick()
    for number in range(5):
        written(scene.logs / f"worker-{number}.out", b"honest")
    await scene.tick()
    assert set(scene.bucket.logs()) == {f"worker-{number}.out" for number in range(5)}


async def test_what_is_followed_stays_when_another_session_is_called_the_latest(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker, "MAX_FOLLOWED", 20)
    for number in range(15):
        written(scene.logs / f"worker-{number}.out", b"one ")
    await scene.tick()
    other = a_session(scene.root, "session_2020-01-01_00-00-00_000000_1")
    for number in range(50):
        written(other / "logs" / f"{number}.log", b"x")
    await scene.tick()
    for number in range(15):
        with (scene.logs / f"worker-{number}.out").open("ab") as file:
            file.write(b"two")
    await scene.tick()
    await scene.tick()
    assert {scene.bucket.text(f"worker-{number}.out") for number in range(15)} == {b"one two"}


async def test_complaints_are_bounded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "MAX_COMPLAINTS", 2)
    counted = Losses("unknown", scene.metrics)
    for number in range(10):
        counted.unreadable(f"evil-{number}", OSError(40, "a link"))
    assert len(counted._complained) == 2
    assert scene.metrics.registry.get_sample_value("raykeeper_collector_log_read_errors_total") == 10

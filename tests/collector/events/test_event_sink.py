"""What the sink says to Ray's agent and to anyone else on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import time
from pathlib import Path

import pytest

from bed.waiting import BUSY_FACTOR, PATIENCE_SECONDS
from raykeeper.collector.events import sink
from raykeeper.collector.events.disk import OpenJournal
from raykeeper.collector.events.journal import read_journal
from raykeeper.errors import Misconfigured
from support.conditions import until
from support.event_scene import RayClient, a_scene, stored_events, stored_rejects
from support.ray_event_batches import EventMaker, body_of, line_of

RAY_GIVES_UP_SECONDS = 3.0
HEAD = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\n"


async def test_an_acknowledged_body_is_on_disk(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        body = body_of(EventMaker().events(3))
        assert await scene.post(body, b"not JSON") == [200, 200]
        (journal,) = (tmp_path / "journals").glob("*.open")
        records = read_journal(memoryview(journal.read_bytes()))
        assert [bytes(record.body) for record in records] == [body, b"not JSON"]


async def test_every_body_gets_200_and_what_is_no_event_is_set_aside(tmp_path: Path) -> None:
    maker = EventMaker()
    good = maker.events(999)
    batch = [*good[:500], {"sessionName": "../../escape"}, *good[500:]]
    async with a_scene(tmp_path) as scene:
        assert await scene.post(body_of(batch), b"", b"{", b"[17]", b'{"a": 1}', b"\xff" * 100) == [200] * 6
        assert await scene.flush() == 0
        assert stored_events(scene.store.objects) == [line_of(event) for event in good]
        reasons = [reject.reason for reject in stored_rejects(scene.store.objects)]
        assert reasons == [
            "impossible session name", "not JSON", "not JSON", "not an object", "not an array of events", "not JSON",
        ]  # fmt: skip
        assert scene.path.figures.events_accepted == 999
        assert scene.path.figures.events_set_aside == 6
        assert scene.metric("events_set_aside_total", reason="not JSON") == 3


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /healthz", 200),
        ("GET /v1/events", 405),
        ("DELETE /v1/events", 405),
        ("POST /healthz", 405),
        ("POST /", 404),
        ("POST /v1/events/more", 404),
        ("GET /../../etc/passwd", 404),
    ],
)
async def test_other_requests(tmp_path: Path, request_line: str, status: int) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        await client.send(f"{request_line} HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]".encode())
        assert await client.status() == status
        assert await client.post(b"[]") == 200  # the connection goes on


@pytest.mark.parametrize(
    "target", ["/v1/events/", "//v1/events", "/v1/events?from=agent", "http://localhost:8084/v1/events"]
)
async def test_events_are_taken_however_their_address_is_spelled(tmp_path: Path, target: str) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        await client.send(f"POST {target} HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]".encode())
        assert await client.status() == 200
        assert scene.metric("batches_total") == 1


async def test_events_that_are_sent_to_another_path_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        for path in ("/v2/events", "/v2/events", "/"):
            await client.send(f"POST {path} HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]".encode())
            assert await client.status() == 404
    (told,) = [str(vars(record)) for record in caplog.records if record.message.startswith("somebody posts to a path")]
    assert "/v2/events" in told


async def test_http_1_0_is_answered_and_closed(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        await client.send(b"POST /v1/events HTTP/1.0\r\nContent-Length: 2\r\n\r\n[]")
        assert [await client.status(), await client.status()] == [200, 0]


async def test_chunks_compression_and_expectations_are_understood(tmp_path: Path) -> None:
    events = EventMaker().events(4)
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        first = body_of(events[:1])
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (first[:10], first[10:]))
        await client.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert await client.status() == 200
        assert await client.post(gzip.compress(body_of(events[1:2])), Content_Encoding="gzip") == 200
        second = body_of(events[2:3])
        await client.send(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(second))
        assert await client.status() == 100
        await client.send(second)
        assert await client.status() == 200
        assert await client.post(body_of(events[3:]), Content_Encoding="br") == 200
        assert await scene.flush() == 0
        assert stored_events(scene.store.objects) == [line_of(event) for event in events[:3]]
        assert [reject.reason for reject in stored_rejects(scene.store.objects)] == ["unknown Content-Encoding"]


async def test_requests_sent_ahead_are_answered_in_order(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        await client.send((HEAD + b"Content-Length: 2\r\n\r\n[]") * 5 + b"GET /none HTTP/1.1\r\n\r\n")
        assert [await client.status() for _ in range(6)] == [200] * 5 + [404]


async def test_who_sends_thousands_of_requests_ahead_is_hung_up_on_at_once(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        async with RayClient(scene.path.port) as hostile:
            began = time.process_time()
            with contextlib.suppress(ConnectionError):
                await hostile.send(b"GET /healthz HTTP/1.1\r\n\r\n" * 100_000)
            answers = 0
            while await hostile.status():
                answers += 1
            assert answers < 1000
            assert time.process_time() - began < 2 * BUSY_FACTOR
        async with RayClient(scene.path.port) as client:
            assert await client.post(b"[]") == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"NONSENSE\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"z" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
        (HEAD + b"Content-Length: many\r\n\r\n", 400),
    ],
    ids=["no HTTP", "HTTP/2", "long header", "long path", "length that is none"],
)
async def test_what_cannot_be_understood_is_answered_and_closed(tmp_path: Path, data: bytes, status: int) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        await client.send(data)
        assert [await client.status(), await client.status()] == [status, 0]


@pytest.mark.parametrize("beginning", [HEAD + b"X: ", HEAD, b"POST /"], ids=["header", "name of a header", "path"])
async def test_a_head_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path, beginning: bytes) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        with contextlib.suppress(ConnectionError):
            await client.send(beginning)
            for _ in range(1000):
                await client.send(b"y" * 2**16)
        assert await asyncio.wait_for(client.status(), PATIENCE_SECONDS) in (
            431,
            0,
        )  # what lies unread may cost the answer
        assert await scene.post(b"[]") == [200]


async def test_a_client_may_ask_to_close(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as client:
        assert [await client.post(b"[]", Connection="close"), await client.status()] == [200, 0]


async def test_64_mb_are_taken_within_the_time_ray_waits_and_without_holding_them_in_memory(tmp_path: Path) -> None:
    events = EventMaker().events(500)
    body = body_of(events * 160)
    assert len(body) > 64 * 10**6
    async with a_scene(tmp_path) as scene:
        started = time.monotonic()
        assert await scene.post(body) == [200]
        assert time.monotonic() - started < RAY_GIVES_UP_SECONDS * BUSY_FACTOR
        assert await scene.flush() == 0
        assert stored_events(scene.store.objects) == [line_of(event) for event in events] * 160
        assert max(map(len, scene.store.objects.values())) < 4 * 10**6


async def test_a_body_that_can_never_fit_is_cut_and_set_aside_instead_of_blocking_ray(tmp_path: Path) -> None:
    async with a_scene(tmp_path, spool_max_bytes=8 * 2**20) as scene, RayClient(scene.path.port) as client:
        assert await client.post(b"x" * 6 * 2**20) == 200
        chunk = b"%x\r\n%b\r\n" % (2**20, b"y" * 2**20)
        await client.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 7 + b"0\r\n\r\n")
        assert await client.status() == 200
        assert await scene.flush() == 0
        rejects = stored_rejects(scene.store.objects)
        assert [(reject.reason[:16], reject.text[:3]) for reject in rejects] == [
            ("body longer than", "xxx"),
            ("body longer than", "yyy"),
        ]
        assert list((tmp_path / "journals").iterdir()) == []
        assert scene.metric("spool_bytes") == 0


async def test_a_client_that_goes_away_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        for size in (100, 5 * 2**20):
            async with RayClient(scene.path.port) as client:
                await client.send(HEAD + b"Content-Length: %d\r\n\r\n" % (size + 1) + b"[" * size)
            await until(lambda: scene.metric("spool_bytes") == 0)
            await until(lambda: not list((tmp_path / "journals").iterdir()))
        assert await scene.post(b"[]") == [200]


async def test_a_stalled_client_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "REQUEST_SECONDS", 0.05)
    monkeypatch.setattr(sink, "SWEEP_SECONDS", 0.01)
    async with a_scene(tmp_path) as scene, RayClient(scene.path.port) as stalled, RayClient(scene.path.port) as idle:
        await stalled.send(HEAD + b"Content-Length: 10\r\n\r\n[")
        assert await asyncio.wait_for(stalled.status(), PATIENCE_SECONDS) == 0
        assert await idle.post(b"[]") == 200  # waiting between requests is no stalling


async def test_many_clients_do_not_shut_ray_out(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        clients = [RayClient(scene.path.port) for _ in range(sink.MAX_CONNECTIONS + 4)]
        for client in clients:
            await client.__aenter__()
            assert await client.post(b"[]") == 200
        assert [await client.status() for client in clients[:4]] == [0] * 4  # the longest silent had to go
        for client in clients:
            await client.__aexit__()


async def test_bodies_of_many_clients_share_an_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    appends: list[int] = []
    append = OpenJournal.append

    def counted(journal: OpenJournal, batches: list[object]) -> None:
        appends.append(len(batches))
        time.sleep(0.5)  # a slow disk: all have sent meanwhile
        append(journal, batches)  # type: ignore[arg-type]  # as it is given

    monkeypatch.setattr(OpenJournal, "append", counted)
    async with a_scene(tmp_path) as scene:
        answers = await asyncio.gather(*(scene.post(b"[]") for _ in range(10)))
    assert answers == [[200]] * 10
    assert sum(appends) == 10
    assert len(appends) <= 4


async def test_a_taken_port_stops_the_program_by_name(tmp_path: Path) -> None:
    async with a_scene(tmp_path / "one") as scene:
        with pytest.raises(Misconfigured, match="another process listens there"):
            async with a_scene(tmp_path / "two", port=scene.path.port):
                pass

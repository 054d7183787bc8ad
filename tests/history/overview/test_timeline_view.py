"""A timeline at any zoom: what its lanes and bins say is what the tasks themselves say."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from raykeeper.history.overview import timeline_index as timeline_index_module
from raykeeper.history.overview.timeline import (
    INTERNALS,
    TimelineLane,
    TimelineQuery,
    TimelineView,
    bins_for,
    bins_number,
    bins_of_cells,
    timeline_view,
)
from raykeeper.history.overview.timeline_index import FAILED, FINISHED, GROUPINGS, RUNNING, Grouping, timeline_index
from raykeeper.history.overview.timeline_marks import MARKS_LIMIT
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.kube_facts import ContainerFact, EventFact, PodFact
from raykeeper.times import NS, to_ns
from support.ingest_scene import START_NS
from support.overview_scene import actor_events, asked_about, at
from support.report_scene import ACTOR, NODE, node_died
from support.timeline_scene import MS, Ran, events_of, some_tasks

ALL_LANES = 100


def in_range(ran: Iterable[Ran], view: TimelineView, job_id: str | None, until_ns: int) -> list[tuple[Ran, int, int]]:
    """The attempts that have something in the range of a view, with their begins and ends."""
    start, stop = to_ns(view.begin), to_ns(view.begin) + round(view.bin_seconds * NS) * view.bins
    found = []
    for one in ran:
        if one.place is None or (job_id is not None and one.job_id != job_id):
            continue
        begin, end = one.place[0], max(one.place[0], until_ns) if one.place[1] is None else one.place[1]
        if begin < stop and end >= start:
            found.append((one, begin, end))
    return found


def lane_of(one: Ran, group: Grouping, *, folds: bool) -> str:
    if folds and one.function.startswith("JobSupervisor"):
        return INTERNALS
    keys = {"actor": one.actor or one.function, "worker": one.worker, "node": one.node, "function": one.function}
    return keys[group]


def sums_of(lane: TimelineLane, view: TimelineView) -> tuple[int, int, float]:
    """Finished, failed and busy seconds, as the lane's bins or its tasks say."""
    if lane.bins is not None:
        assert {len(lane.bins.running), len(lane.bins.finished), len(lane.bins.failed)} == {view.bins}
        return sum(lane.bins.finished), sum(lane.bins.failed), sum(lane.bins.running) * view.bin_seconds
    assert lane.tasks is not None
    length = view.bin_seconds * view.bins * 1000
    ended = Counter(kind for kind, end in zip(lane.tasks.kinds, lane.tasks.ends_ms, strict=True) if end < length)
    times = zip(lane.tasks.begins_ms, lane.tasks.ends_ms, strict=True)
    return ended[FINISHED], ended[FAILED], sum(min(end, length) - max(0.0, begin) for begin, end in times) / 1000


def a_query(dice: random.Random) -> TimelineQuery:
    """Any zoom and grouping; some ranges lie partly or wholly outside of the session."""
    length = dice.choice((0.00001, 0.01, 1, 10, 70, 5000))
    start = at(dice.uniform(-5, 65))
    some = dice.random() < 0.8
    return TimelineQuery(
        start=start if some else None,
        end=start + timedelta(seconds=length) if some else None,
        width=dice.choice((60, 390, 1200, 4000)),
        group=dice.choice(GROUPINGS),
        folds_internals=dice.random() < 0.5,
        job_id=dice.choice((None, None, "01000000", "02000000", "09000000")),
        limit=ALL_LANES,
    )


@pytest.mark.parametrize(("seed", "is_celled"), [(0, False), (1, False), (2, True), (3, True)])
async def test_lanes_and_bins_hold_every_task_once_at_any_zoom_and_grouping(
    seed: int, is_celled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted one by one as in small sessions, and added up from cells as in large ones."""
    if is_celled:
        monkeypatch.setattr(timeline_index_module, "CELLED_ATTEMPTS", 0)
        monkeypatch.setattr(timeline_index_module, "_CELLS", 200)
        monkeypatch.setattr(timeline_index_module, "_WORTH", 0)
    dice, ran = random.Random(seed), some_tasks(1500, seed)
    until = at(dice.choice((30, 90)))  # clocks differ: tasks may run on when nothing else is known of a session
    async with asked_about(tmp_path, events_of(ran), as_of=until) as context:
        for _ in range(40):
            query = a_query(dice)
            check(await timeline_view(context, query), query, ran, to_ns(until))


def check(view: TimelineView, query: TimelineQuery, ran: list[Ran], until_ns: int) -> None:
    """The view beside what the tasks themselves say."""
    found = in_range(ran, view, query.job_id, until_ns)
    of_job = [one for one in ran if query.job_id in (None, one.job_id)]
    assert view.attempts == sum(lane.attempts for lane in view.lanes) == len(found), query
    assert view.attempts + view.outside + view.waiting == len(of_job), query
    expected = Counter(lane_of(one, query.group, folds=query.folds_internals) for one, _, _ in found)
    assert sorted(lane.attempts for lane in view.lanes) == sorted(expected.values()), query
    begin = to_ns(view.begin)
    stop = begin + round(view.bin_seconds * NS) * view.bins
    ended = Counter(one.kind for one, _, end in found if end < stop)
    busy = sum(min(end, stop) - max(begin, start) for _, start, end in found) / NS
    sums = [sums_of(lane, view) for lane in view.lanes]
    assert sum(one[0] for one in sums) == sum(lane.finished for lane in view.lanes) == ended[FINISHED], query
    assert sum(one[1] for one in sums) == sum(lane.failed for lane in view.lanes) == ended[FAILED], query
    assert sum(lane.busy_seconds for lane in view.lanes) == pytest.approx(busy, abs=0.001), query
    rounded = 0.0005 * view.bin_seconds * view.bins * len(view.lanes)
    assert sum(one[2] for one in sums) == pytest.approx(busy, abs=rounded + 0.001), query


async def test_lanes_come_in_pages_that_hold_all_of_them_once_and_in_the_same_order_at_any_zoom(tmp_path: Path) -> None:
    async with asked_about(tmp_path, events_of(some_tasks(600))) as context:
        whole = await timeline_view(context, TimelineQuery(group="worker", limit=ALL_LANES))
        pages = [await timeline_view(context, TimelineQuery(group="worker", limit=4, offset=at)) for at in (0, 4, 8)]
        part = await timeline_view(context, TimelineQuery(at(20), at(21), group="worker", limit=ALL_LANES))
    ids = [lane.id for lane in whole.lanes]
    assert [lane.id for page in pages for lane in page.lanes] == ids
    assert [(page.lanes_before, page.lanes_left_out) for page in pages] == [(0, 6), (4, 2), (8, 0)]
    assert [page.attempts for page in pages] == [whole.attempts] * 3
    assert [lane.id for lane in part.lanes] == [one for one in ids if one in {lane.id for lane in part.lanes}]


async def test_the_busiest_lane_comes_first(tmp_path: Path) -> None:
    async with asked_about(tmp_path, events_of(some_tasks(300))) as context:
        view = await timeline_view(context, TimelineQuery(group="function", folds_internals=False))
    busy = [lane.busy_seconds for lane in view.lanes]
    assert busy == sorted(busy, reverse=True)


async def test_a_page_behind_the_last_lane_is_empty_and_still_counts(tmp_path: Path) -> None:
    async with asked_about(tmp_path, events_of([Ran(1, 0, 5 * MS)])) as context:
        view = await timeline_view(context, TimelineQuery(offset=10))
    assert (view.lanes, view.attempts, view.outside) == ((), 1, 0)


async def test_what_ray_does_for_itself_is_folded_into_the_last_lane_until_it_is_unfolded(tmp_path: Path) -> None:
    ran = [Ran(1, 0, 9 * MS, function="JobSupervisor.ping", actor=ACTOR), Ran(2, 0, MS, function="step")]
    async with asked_about(tmp_path, events_of(ran)) as context:
        folded = await timeline_view(context, TimelineQuery(group="function"))
        unfolded = await timeline_view(context, TimelineQuery(group="function", folds_internals=False))
    assert [lane.label for lane in folded.lanes] == ["step", "Ray internals"]
    assert [lane.label for lane in unfolded.lanes] == ["JobSupervisor.ping", "step"]


async def test_few_tasks_are_single_ones_and_many_are_bins(tmp_path: Path) -> None:
    ran = [Ran(number, number * MS, number * MS + MS, function="many") for number in range(400)]
    ran += [Ran(900, 0, 3 * MS, FAILED, function="few")]
    async with asked_about(tmp_path, events_of(ran)) as context:
        view = await timeline_view(context, TimelineQuery(group="function"))
        zoomed = await timeline_view(context, TimelineQuery(at(0.1), at(0.11), group="function"))
    many, few = view.lanes
    assert many.tasks is None
    assert many.bins is not None
    assert few.bins is None
    assert few.tasks is not None
    assert (few.tasks.ids, few.tasks.kinds, few.tasks.ends_ms) == ((ran[-1].id,), (FAILED,), (3.0,))
    assert zoomed.lanes[0].tasks is not None
    assert [zoomed.functions[place] for place in set(zoomed.lanes[0].tasks.functions)] == ["many"]


async def test_lanes_are_named_as_people_name_things(tmp_path: Path) -> None:
    ran = [Ran(1, 0, MS, function="Counter.inc", actor=ACTOR, node=NODE, pid=77), Ran(2, 0, MS, worker="", node="")]
    named = {"name": "trainer-2", "className": "Trainer"}
    events = [*events_of(ran), *actor_events([("ALIVE", 0)], **named), *node_died("EXPECTED_TERMINATION", "bye", 40)]
    async with asked_about(tmp_path, events) as context:
        labels = {
            group: {
                (lane.label, lane.note) for lane in (await timeline_view(context, TimelineQuery(group=group))).lanes
            }
            for group in GROUPINGS
        }
    assert labels["actor"] == {("trainer-2", "Trainer"), ("step", "")}
    assert labels["function"] == {("Counter.inc", ""), ("step", "")}
    assert ("Without a worker", "") in labels["worker"]
    assert any(label.startswith("pid 77 on ") for label, _ in labels["worker"])
    assert ("Without a node", "") in labels["node"]


async def test_a_task_that_nobody_saw_end_runs_to_the_end_of_what_is_known(tmp_path: Path) -> None:
    async with asked_about(tmp_path, events_of([Ran(1, 0, None, RUNNING)]), as_of=at(30)) as context:
        view = await timeline_view(context, TimelineQuery())
    [lane] = view.lanes
    assert lane.tasks is not None
    assert (view.last, lane.tasks.kinds, lane.tasks.ends_ms) == (at(30), (RUNNING,), (30_000.0,))


async def test_a_session_without_tasks_has_an_empty_timeline(tmp_path: Path) -> None:
    async with asked_about(tmp_path, []) as context:
        view = await timeline_view(context, TimelineQuery())
    assert (view.lanes, view.attempts, view.outside, view.waiting) == ((), 0, 0, 0)


def test_bins_cover_the_range_whatever_its_length_and_the_width() -> None:
    for length in (20_000, 10**9 + 7, 10**17):
        for width in (60, 61, 390, 4000):
            bins = bins_for(START_NS, START_NS + length, bins_number(width))
            assert bins.end_ns >= START_NS + length
            assert bins.end_ns - (START_NS + length) < bins.number + 1
            cells = bins_of_cells(START_NS, START_NS + length, bins_number(width), START_NS - 777, 1 + length // 1000)
            assert cells.begin_ns <= START_NS < cells.begin_ns + cells.width_ns
            assert cells.end_ns >= START_NS + length
            assert cells.number <= bins_number(width)
            assert (cells.begin_ns - START_NS + 777) % (1 + length // 1000) == 0


async def test_what_kubernetes_did_is_a_line_through_the_lanes(tmp_path: Path) -> None:
    pulled = EventFact(
        at=at(2), uid="1", type="Normal", reason="Pulled", message="image", about_kind="Pod", about_name="a"
    )
    chat = EventFact(at=at(3), uid="2", type="Normal", reason="Created", message="x", about_kind="Pod", about_name="a")
    late = EventFact(
        at=at(90), uid="3", type="Warning", reason="Evicted", message="x", about_kind="Pod", about_name="a"
    )
    killed = ContainerFact(name="ray", state="terminated", reason="OOMKilled", exit_code=137, finished_at=at(5))
    pods = (
        PodFact(at=at(5), uid="p", name="a", containers=(killed,)),
        PodFact(at=at(8), uid="p", name="a", deleted=True),
    )
    events = [*events_of([Ran(1, 0, 30_000 * MS)]), *node_died("UNEXPECTED_TERMINATION", "no heartbeat", 20)]
    async with asked_about(tmp_path, events, kube=KubeFacts(pods=pods, events=(pulled, chat, late))) as context:
        view = await timeline_view(context, TimelineQuery())
    assert [(mark.at, mark.kind, mark.title.split(":")[0], mark.about.split(" ")[0]) for mark in view.marks] == [
        (at(2), "normal", "Pulled", "Pod"),
        (at(5), "warning", "ray ended with code 137", "Pod"),
        (at(8), "normal", "the pod is gone", "Pod"),
        (at(20), "failed", "node died", "Ray"),
    ]


async def test_too_many_lines_are_bounded_and_warnings_stay(tmp_path: Path) -> None:
    events = [
        EventFact(at=at(number / 100), uid=str(number), type="Normal", reason="Pulled", message=str(number))
        for number in range(MARKS_LIMIT + 30)
    ]
    warning = EventFact(at=at(9), uid="w", type="Warning", reason="Evicted", message="no room")
    facts = KubeFacts(events=(*events, warning))
    async with asked_about(tmp_path, events_of([Ran(1, 0, 10_000 * MS)]), kube=facts) as context:
        view = await timeline_view(context, TimelineQuery())
    assert (len(view.marks), view.marks_left_out) == (MARKS_LIMIT, 31)
    assert "Evicted: no room" in [mark.title for mark in view.marks]


async def test_an_index_that_somebody_deleted_is_made_again(tmp_path: Path) -> None:
    async with asked_about(tmp_path, events_of([Ran(1, 0, MS)])) as context:
        before = await timeline_index(context)
        assert await timeline_index(context) is before
        before.places.path.unlink()
        view = await timeline_view(context, TimelineQuery())
    assert view.attempts == 1


async def test_an_index_goes_from_the_disk_when_nobody_needs_it(tmp_path: Path) -> None:
    async with asked_about(tmp_path, events_of([Ran(1, 0, MS)])) as context:
        path = (await timeline_index(context)).places.path
        assert path.exists()
        context.cache.drop(next(iter(context.cache._values._items)))
        await asyncio.sleep(0)  # the task that made it is let go
        gc.collect()
        assert not path.exists()
    assert list((tmp_path / "copies").glob("*/")) == []

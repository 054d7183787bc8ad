"""The timeline of a large session: what the server takes for a look at ten zooms, and what a browser takes to show it.

`RAYKEEPER_BENCH_TASKS=200000` chooses another size; a million tasks take two minutes to generate.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from bed.chromium import Chromium, chromium_program
from bed.runs import end_run, new_run
from bench.figures import Figure
from bench.history_server import ANSWER_SECONDS, Bucket, Server, a_history_server
from bench.resources import cpu_seconds, peak_mb
from bench.sessions import SessionSpec, write_session
from history.browser.devtools import devtools
from history.browser.tab import Tab, new_tab
from support.conditions import eventually

TASKS = "1000000"
ZOOMS = tuple(2**power for power in range(10))
GROUPS = ("actor", "worker", "node", "function")
LOOKS = 10
"""At each zoom and grouping, each at another place."""
LOOK_MS, PAINT_SECONDS, PAGE_KB, TAB_MB = 100, 1.0, 300, 150
JOB = "05000000"


def run() -> Iterator[Figure]:
    """One server on a folder."""
    spec = SessionSpec(int(os.environ.get("RAYKEEPER_BENCH_TASKS", TASKS).partition(",")[0]))
    with tempfile.TemporaryDirectory() as folder:
        bucket = Bucket(f"file://{folder}/store", {})
        asyncio.run(write_session(bucket.open(), spec))
        yield from asyncio.run(measure(bucket, spec, Path(folder) / "cache"))


async def measure(bucket: Bucket, spec: SessionSpec, cache: Path) -> list[Figure]:
    async with a_history_server(bucket, cache) as server:
        await _ingested(server.http, spec)
        name = f"{spec.tasks:,} tasks: timeline"
        first = await _look(server.http, spec, group="actor")
        for group in GROUPS:
            await _look(server.http, spec, group=group)
        whole = first.answer
        figures = [Figure(f"{name}, index made by the first look", first.seconds, "s")]
        figures += [await _zoom_figure(server, spec, whole, zoom, name) for zoom in ZOOMS]
        figures.append(await _brush_figure(server, spec, whole, name))
        figures.append(Figure(f"{name}, most memory of the server", peak_mb(server.pid), "MB RSS"))
        return [*figures, *await _browser_figures(f"{server.address}/s/{spec.id}/timeline", name)]


@dataclass(frozen=True)
class _Look:
    seconds: float
    size: int
    answer: dict[str, Any]


async def _look(http: aiohttp.ClientSession, spec: SessionSpec, path: str = "timeline", **params: str) -> _Look:
    began = time.monotonic()
    async with http.get(f"/s/{spec.id}/api/keeper/v1/{path}?{urlencode(params)}") as answer:
        body = await answer.read()
        assert answer.status == 200, body
    return _Look(time.monotonic() - began, len(body), json.loads(body))


async def _zoom_figure(server: Server, spec: SessionSpec, whole: dict[str, Any], zoom: int, name: str) -> Figure:
    dice, looks = random.Random(zoom), list[_Look]()
    before = cpu_seconds(server.pid)
    for number in range(LOOKS * len(GROUPS)):
        looks.append(await _look(server.http, spec, group=GROUPS[number % len(GROUPS)], **_range(whole, zoom, dice)))
    cpu = (cpu_seconds(server.pid) - before) / len(looks) * 1000
    times = sorted(look.seconds * 1000 for look in looks)
    size = max(look.size for look in looks) / 1000
    said = f"median {times[len(times) // 2]:.0f} ms, {cpu:.0f} ms of processor, at most {size:.0f} kB"
    part = "all of it" if zoom == 1 else f"1/{zoom} of it"
    return Figure(f"{name}, {part}, p95", times[math.ceil(len(times) * 0.95) - 1], "ms", LOOK_MS, "less", said)


def _range(whole: dict[str, Any], zoom: int, dice: random.Random) -> dict[str, str]:
    first, last = (datetime.fromisoformat(whole[name]) for name in ("first", "last"))
    length = (last - first) / zoom
    start = first + (last - first - length) * dice.random()
    return {"start": _moment(start), "end": _moment(start + length)}


def _moment(time_: datetime) -> str:
    return time_.isoformat().replace("+00:00", "Z")


async def _brush_figure(server: Server, spec: SessionSpec, whole: dict[str, Any], name: str) -> Figure:
    dice = random.Random("brush")
    looks = [await _look(server.http, spec, "timeline/tasks", **_range(whole, 512, dice)) for _ in range(LOOKS)]
    times = sorted(look.seconds * 1000 for look in looks)
    said = f"about {looks[0].answer['total']:,} tasks in it, {len(looks[0].answer['tasks'])} listed"
    return Figure(
        f"{name}, a brush over 1/512 of it, p95", times[math.ceil(len(times) * 0.95) - 1], "ms", baseline=said
    )


async def _browser_figures(url: str, name: str) -> list[Figure]:
    folder = new_run()
    try:
        address = Chromium(chromium_program(), folder / "chromium").up()
        async with devtools(address) as browser, new_tab(browser) as tab:
            await tab.look_as(1400, "light")
            await _shown(tab, url)  # the browser itself is warm
            await _shown(tab, url)
            painted, drawn, weight = await tab.value_of(_TIMES)
            for key in ("+", "+", "+", "ArrowRight", "ArrowRight", "-", "0"):
                await tab.run("document.querySelector('canvas').focus()")
                await tab.press(key)
                await asyncio.sleep(0.3)
            info = await browser.command("SystemInfo.getProcessInfo")
            heap = await tab.value_of("performance.memory.usedJSHeapSize")
            tabs = [_private_mb(one["id"]) for one in info["processInfo"] if one["type"] == "renderer"]
    finally:
        end_run(folder)
    said = f"{heap / 1e6:.1f} MB of it script; private memory of the largest renderer, after looking around"
    return [
        Figure(f"{name}, first paint in Chromium", painted / 1000, "s", PAINT_SECONDS),
        Figure(f"{name}, lanes drawn in Chromium", drawn / 1000, "s", PAINT_SECONDS),
        Figure(f"{name}, all that the page loads", weight / 1000, "kB", PAGE_KB),
        Figure(f"{name}, memory of the tab", max(tabs), "MB", TAB_MB, "less", said),
    ]


_TIMES = """
(() => {
  const loads = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const weight = loads.reduce((sum, load) => sum + load.encodedBodySize, 0);
  const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  return [paint, performance.getEntriesByName("timeline shown")[0].startTime, weight];
})()
"""


async def _shown(tab: Tab, url: str) -> None:
    await tab.open("about:blank")
    await tab.open(url)
    await eventually(lambda: tab.value_of("performance.getEntriesByName('timeline shown').length"))


def _private_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024 / 1e6


async def _ingested(http: aiohttp.ClientSession, spec: SessionSpec) -> None:
    """Until the whole session is in tables."""
    async with asyncio.timeout(ANSWER_SECONDS):
        while True:
            async with http.get(f"/s/{spec.id}/api/keeper/v1/overview") as answer:
                overview = await answer.json()
            if overview["counts"]["attempts"] == spec.tasks and not overview["facts"]["unread_bytes"]:
                return
            await asyncio.sleep(1)

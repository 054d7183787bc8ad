"""The report as one file: opened from a disk without any network, it shows all and asks for nothing."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from bed.npm import npm_is_missing
from history.browser.accessibility import barriers_of, install_axe, overflow_of
from history.browser.tab import Tab
from raykeeper.history.http.pages.export import MAX_BYTES

pytestmark = [pytest.mark.bed, pytest.mark.skipif(npm_is_missing() is not None, reason=str(npm_is_missing()))]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "job/golden-fail/report.html",
            ("job_fail: raising", "Driver log", "Environment", "At a glance", "python job_fail.py"),
        ),
        ("report.html", ("Root cause", "exited with code 7")),
    ],
)
async def test_the_file_stands_alone(
    path: str, words: tuple[str, ...], tab: Tab, session_url: str, tmp_path: Path, shots: Path
) -> None:
    async with aiohttp.ClientSession() as http, http.get(session_url + path) as answer:
        assert answer.headers["Content-Disposition"].startswith('attachment; filename="raykeeper-')
        page = await answer.read()
    assert len(page) < MAX_BYTES
    assert b"<script" not in page
    file = tmp_path / "report.html"
    file.write_bytes(page)
    await tab.go_offline()
    await tab.open(file.as_uri())
    await tab.shows(words)
    asked = [one.url for one in tab.traffic.requests.values()]
    assert asked == [file.as_uri()]
    assert [complaint.text for complaint in tab.traffic.complaints] == []
    await install_axe(tab)
    for width, scheme in ((1400, "light"), (390, "dark")):
        await tab.look_as(width, "light" if scheme == "light" else "dark")
        assert await overflow_of(tab) + await barriers_of(tab) == []
        await tab.screenshot(shots / f"export-{path.count('/')}-{width}-{scheme}.png", is_whole=True)

"""Looks at one of our pages as people do: wide and narrow, light and dark, with axe, and at what it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from history.browser.accessibility import barriers_of, install_axe, overflow_of
from history.browser.own_pages import OwnPage
from history.browser.tab import Tab

Look = tuple[int, Literal["light", "dark"]]
LOOKS: tuple[Look, ...] = ((1400, "light"), (1400, "dark"), (390, "light"), (390, "dark"))
CHECKED: tuple[Look, ...] = ((1400, "light"), (1400, "dark"), (390, "light"), (390, "dark"))
"""By axe, which takes a second for a page."""
PAGE_LIMIT_BYTES = 200_000


async def faults_on(page: OwnPage, tab: Tab, site: str, shots: Path) -> list[str]:
    """Whatever a person could stumble over; screenshots are kept."""
    await tab.open(site + page.path)
    await tab.shows(page.words)
    await install_axe(tab)
    faults: list[str] = []
    for width, scheme in LOOKS:
        await tab.look_as(width, scheme)
        found = await overflow_of(tab)
        if (width, scheme) in CHECKED:
            found += await barriers_of(tab)
        faults += [f"{width} {scheme}: {fault}" for fault in found]
        await tab.screenshot(shots / f"{page.name}-{width}-{scheme}.png", is_whole=True)
    size = await tab.value_of("document.documentElement.outerHTML.length")
    too_large = [f"{size:,} bytes"] if size >= PAGE_LIMIT_BYTES else []
    return faults + too_large + _faults_of_traffic(tab, page, site)


def _faults_of_traffic(tab: Tab, page: OwnPage, site: str) -> list[str]:
    """What was refused, left the server or is on the console. A page may itself say that something is not there."""
    address = site + page.path
    expected = {address} if page.status >= 400 else set()
    faults = [
        f"{asked.method} {asked.url}: {asked.failure or asked.status}"
        for asked in tab.traffic.requests.values()
        if asked.failure
        or asked.status != (page.status if asked.url == address else 200)
        or not asked.url.startswith((site, "data:"))  # the browser's own icons in a form
    ]
    complaints = (complaint for complaint in tab.traffic.complaints if complaint.url not in expected)
    return faults + [f"console: {complaint.text}" for complaint in complaints]

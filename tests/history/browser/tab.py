"""One tab of the browser, used as a person does: open an address, read what is there, click on words."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from history.browser.devtools import DevTools
from history.browser.traffic import Traffic
from support.conditions import eventually

PAGE_SECONDS = 120.0
_SHIFT = 8  # of the protocol's modifiers
Point = tuple[float, float]
DOMAINS = ("Page", "Runtime", "Network", "Log")

# What a person would click on for a word: the innermost visible element that says just this.
FIND = """
(() => {
  const is = element => element.innerText?.trim() === WORD || element.getAttribute("aria-label") === WORD;
  const found = [...document.querySelectorAll("SELECTOR")].filter(element => is(element) && element.offsetParent);
  const element = found.find(each => !found.some(other => other !== each && each.contains(other)));
  if (!element) return null;
  element.scrollIntoView({block: "center", inline: "center"});
  const box = element.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()
"""


class Tab:
    """`traffic` has all that was asked and complained about since it was opened."""

    def __init__(self, browser: DevTools, session: str) -> None:
        self._browser = browser
        self._session = session
        self.traffic = Traffic()
        browser.listen(session, self.traffic.note)

    async def open(self, url: str) -> None:
        await self._tell("Page.navigate", url=url)

    async def text(self) -> str:
        """What a person can read there."""
        return str(await self._evaluate("document.body ? document.body.innerText : ''"))

    async def address(self) -> str:
        return str(await self._evaluate("location.href"))

    async def sources_of(self, selector: str) -> list[str]:
        """Where elements such as frames and pictures come from."""
        sources: list[str] = await self._evaluate(f"[...document.querySelectorAll('{selector}')].map(each => each.src)")
        return sources

    async def run(self, script: str) -> None:
        """Let the page itself do something."""
        await self._evaluate(script + "; null")

    async def run_first(self, script: str) -> None:
        """Have every page that is opened from now on begin with this."""
        await self._tell("Page.addScriptToEvaluateOnNewDocument", source=script)

    async def value_of(self, expression: str) -> Any:
        """What an expression is in the page, once it is settled."""
        return await self._evaluate(expression, awaitPromise=True)

    async def go_offline(self) -> None:
        """Have no network from now on."""
        await self._tell(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )

    async def look_as(self, width: int, scheme: Literal["light", "dark"]) -> None:
        """Be a window of that width, of somebody who likes it light or dark."""
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        await self._tell("Emulation.setDeviceMetricsOverride", **size)
        await self._tell("Emulation.setScrollbarsHidden", hidden=True)  # a picture of the whole page has none
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self._tell("Emulation.setEmulatedMedia", features=features)

    async def shows(self, words: Sequence[str]) -> None:
        """Return once all words are there and nothing is under way; the test fails by naming those that stay away."""
        missing = list(words)

        async def all_there() -> bool:
            text = await self.text()
            missing[:] = [word for word in words if word not in text]
            return not missing and self.traffic.is_quiet

        try:
            await eventually(all_there, seconds=PAGE_SECONDS)
        except TimeoutError as late:
            raise AssertionError(
                f"{await self.address()}: missing {missing}, quiet: {self.traffic.is_quiet}\n{await self.text()}"
            ) from late

    async def shows_now(self, words: Sequence[str]) -> None:
        """Return once all words are there, also on a page that keeps a stream open and is never quiet."""

        async def all_there() -> bool:
            text = await self.text()
            return all(word in text for word in words)

        try:
            await eventually(all_there, seconds=PAGE_SECONDS)
        except TimeoutError as late:
            raise AssertionError(f"{await self.address()}: not all of {words}\n{await self.text()}") from late

    async def click(self, word: str, selector: str = "*") -> None:
        """Press the mouse on what says that word, once it is there."""
        find = FIND.replace("WORD", json.dumps(word)).replace("SELECTOR", selector)
        place: list[float] | None = None

        async def stands_still() -> list[float] | None:
            nonlocal place
            before, place = place, await self._evaluate(find)
            return place if place == before and self.traffic.is_quiet else None  # what is still loading moves the rest

        try:
            x, y = await eventually(stands_still, seconds=PAGE_SECONDS) or (0, 0)
        except TimeoutError as late:
            raise AssertionError(f"{await self.address()}: nothing says {word!r}\n{await self.text()}") from late
        for kind in ("mousePressed", "mouseReleased"):
            await self._tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def drag(self, begin: Point, end: Point, *, shift: bool = False) -> None:
        """Press the mouse at one place, move it to another in steps, and let go."""
        how = {"button": "left", "buttons": 1, "modifiers": _SHIFT if shift else 0}
        steps = [
            (begin[0] + (end[0] - begin[0]) * part / 5, begin[1] + (end[1] - begin[1]) * part / 5) for part in range(6)
        ]
        await self._mouse("mousePressed", begin, clickCount=1, **how)
        for place in steps:
            await self._mouse("mouseMoved", place, **how)
        await self._mouse("mouseReleased", end, clickCount=1, **how)

    async def click_at(self, place: Point) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self._mouse(kind, place, button="left", clickCount=1)

    async def point_at(self, place: Point) -> None:
        await self._mouse("mouseMoved", place)

    async def wheel(self, place: Point, down: float) -> None:
        await self._mouse("mouseWheel", place, deltaX=0, deltaY=down)

    async def press(self, key: str) -> None:
        """One key of the keyboard, by the name that pages know it by."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        await self._tell("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        await self._tell("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def _mouse(self, kind: str, place: Point, **how: Any) -> None:
        await self._tell("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **how)

    async def screenshot(self, file: Path, *, is_whole: bool = False) -> None:
        """A picture of the window, or of the whole page, as PNG."""
        picture = await self._tell("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole)
        await asyncio.to_thread(_keep, file, base64.b64decode(picture["data"]))

    async def _evaluate(self, expression: str, **how: bool) -> Any:
        answer = await self._tell("Runtime.evaluate", expression=expression, returnByValue=True, **how)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Any command of the protocol."""
        return await self._tell(method, **parameters)

    async def _tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._browser.command(method, self._session, **parameters)


@asynccontextmanager
async def new_tab(browser: DevTools) -> AsyncIterator[Tab]:
    """An empty tab, watched from its first request on, and closed afterwards."""
    target = (await browser.command("Target.createTarget", url="about:blank"))["targetId"]
    session = (await browser.command("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    tab = Tab(browser, session)
    for domain in DOMAINS:
        await browser.command(f"{domain}.enable", session)
    try:
        yield tab
    finally:
        await browser.command("Target.closeTarget", targetId=target)


def _keep(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)

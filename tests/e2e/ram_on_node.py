"""Alibaba's RAM as far as its wire goes, where pods of the real node reach it, and a person who signs in there."""

from __future__ import annotations

import ssl
import urllib.request
from contextlib import AsyncExitStack
from http.cookiejar import CookieJar
from pathlib import Path

from bed.faults.loop_thread import LoopThread
from bed.node.settings import NODE_ADDRESS
from bed.pki import Authority
from support.login_providers import RamProvider
from support.scripted_server import served

TIMEOUT_SECONDS = 60.0


class RamOnNode(LoopThread):
    """An OAuth application of RAM, over TLS; whoever is sent there is signed in as `provider.person`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.provider = RamProvider()
        authority = Authority.create("ram-ca")
        self.ca_file = authority.pair.write(folder, "ram-ca").certificate
        files = authority.issue("ram", sans=[str(NODE_ADDRESS)]).write(folder, "ram")
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(files.certificate, files.key)
        self._stack = AsyncExitStack()

    async def _open(self) -> None:
        serving = served(self.provider.handle, self._tls, str(NODE_ADDRESS))
        self.provider.url = await self._stack.enter_async_context(serving)

    async def _close(self) -> None:
        await self._stack.aclose()

    def sign_in(self, server: str) -> dict[str, str]:
        """Sign in at a history server, as a browser does that follows where it is sent; the header of its cookies."""
        jar = CookieJar()
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self.ca_file))
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar), tls)
        browser.addheaders = [("Accept", "text/html")]
        with browser.open(f"{server}/login/start?next=/sessions", timeout=TIMEOUT_SECONDS) as page:
            assert page.url == f"{server}/sessions", page.url
            assert b"Signed in as alice" in page.read()
        return {"Cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)}

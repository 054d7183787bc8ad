"""Servers that speak S3 without conditional writes: an object is still created, and it is said what that lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import unquote

import pytest
from aiohttp import web

from raykeeper.storage.opening import open_store
from raykeeper.storage.patience import Patience
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.store import ObjectStore
from support.scripted_server import served

KEYS = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "its-secret"}


@dataclass
class ModestS3:
    """Keeps objects, and refuses a condition as something that it does not have."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    conditions: int = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        key = unquote(request.raw_path)
        if request.method == "PUT":
            if "If-None-Match" in request.headers:
                self.conditions += 1
                return _error(501, "NotImplemented")
            self.objects[key] = await request.content.read()
            return web.Response(headers={"ETag": '"etag"'})
        if "list-type" in request.query:
            return web.Response(text="<ListBucketResult></ListBucketResult>", content_type="application/xml")
        return web.Response(body=self.objects[key]) if key in self.objects else _error(404, "NoSuchKey")

    def open(self) -> ObjectStore:
        environment = {**KEYS, "S3_BUCKET": "history", "S3_ENDPOINT": self.url, "S3FORCE_PATH_STYLE": "true"}
        patience = Patience(attempts=2, longest_pause_seconds=0.05)
        return open_store(read_store_settings("s3", "", environment), patience)


def _error(status: int, code: str) -> web.Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>so it is</Message></Error>'
    return web.Response(status=status, text=text, content_type="application/xml")


@pytest.fixture
async def s3() -> AsyncIterator[ModestS3]:
    server = ModestS3()
    async with served(server.handle) as server.url:
        yield server


async def test_an_object_is_created_where_there_is_none(s3: ModestS3, caplog: pytest.LogCaptureFixture) -> None:
    store = s3.open()
    assert await store.create("session.json", b"first") is True
    assert await store.create("session.json", b"second") is False
    assert s3.objects["/history/session.json"] == b"first"
    told = [record for record in caplog.records if record.message.startswith("this store cannot create")]
    assert (len(told), s3.conditions) == (1, 1)  # it is not asked for again what it has said it cannot

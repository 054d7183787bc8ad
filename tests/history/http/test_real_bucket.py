"""The whole server over a real bucket: from what collectors stored to lists, pages and logs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from raykeeper.history.http.app import make_app
from raykeeper.history.program import open_history
from raykeeper.history.settings import HistorySettings, HistoryStoreSettings
from raykeeper.storage.opening import open_store
from support.asking import ask
from support.object_store_settings import Stores
from support.raycapture import HEAD, SESSION, RayCapture, put_into

pytestmark = pytest.mark.bed

PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
LOG = f"{PREFIX}/api/v0/logs/file?node_id={HEAD.node_id}"
TASK = "0305c20c67b558eeffffffffffffffffffffffff02000000"


async def test_two_replicas_show_a_session_out_of_a_bucket(
    request: pytest.FixtureRequest, raycapture: RayCapture, tmp_path: Path
) -> None:
    bucket = Stores(request, tmp_path).settings("minio")
    await put_into(open_store(bucket), raycapture, "final")
    settings = HistorySettings(HistoryStoreSettings(url="s3://bucket"))
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    async with open_history(settings, bucket, folders[0]) as one, open_history(settings, bucket, folders[1]) as two:
        apps = make_app(one), make_app(two)
        paths = ("/clusters", f"{PREFIX}/api/v0/tasks?limit=10000", f"{LOG}&filename=job-driver-golden-fail.log")
        for path in (*paths, f"{PREFIX}/api/v0/logs/file?task_id={TASK}"):
            first, second = await asyncio.gather(*(ask(app, path) for app in apps))
            assert (first.status, first.content) == (second.status, second.content) == (200, first.content)
            assert first.content
        tasks = (await ask(apps[0], paths[1])).body["data"]["result"]
        assert tasks["total"] == len(tasks["result"]) == 178
        assert (await ask(apps[1], f"{PREFIX}/api/v0/logs/file?task_id={TASK}")).text == "ok task stdout 1\n"
        assert SESSION.session in (await ask(apps[0], "/sessions")).text
        began = time.process_time()
        await ask(apps[0], f"{LOG}&filename=raylet.out&lines=50")
        assert time.process_time() - began < 2.5  # 0.02 s, and what other threads of this process do meanwhile

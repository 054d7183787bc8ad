"""What users had KubeRay's collector ask for besides is given back from its buckets, as from ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raykeeper.history.store.kuberay.keys import KubeRayPlace
from raykeeper.layout.keys import PolledKey, session_record_key
from raykeeper.layout.polled import encode_polled, polled_body, polled_name
from raykeeper.layout.records import PolledAnswer, SessionRecord, encode_record
from support.asking import ask
from support.ingest_scene import local_store
from support.kuberay_buckets import OF_A_JOB, PLAIN, KubeRayBucket
from support.kuberay_client import kuberay_client
from support.whole_history import built_server

KEPT = "/api/v0/shares?team=a&detail=1"
SLASHED = "/api/my__shares/"
SECRET = {"env_vars": {"PLAIN": "swordfish"}}


def url_of(place: KubeRayPlace) -> str:
    id_ = place.session
    return f"/s/{id_.namespace}/{id_.cluster}/{id_.session}"


@pytest.mark.parametrize("place", [PLAIN, OF_A_JOB])
async def test_answers_in_a_kuberay_bucket_are_given_back(tmp_path: Path, place: KubeRayPlace) -> None:
    bucket = KubeRayBucket(local_store(tmp_path / "bucket"), place)
    await bucket.put_marker()
    await bucket.put_answer(KEPT, SECRET)
    await bucket.put_answer(SLASHED, [1])
    masked = {"env_vars": {"PLAIN": "<redacted>"}}
    async with built_server(tmp_path / "bucket", tmp_path / "cache") as app:
        prefix, id_ = url_of(place), place.session
        assert (await ask(app, prefix + KEPT)).body == masked
        assert (await ask(app, prefix + SLASHED)).body == [1]
        assert (await ask(app, f"{prefix}/api/v0/shares?team=a")).status == 404
        async with kuberay_client(app) as client:
            assert (
                await client.get(f"/enter_cluster/{id_.namespace}/raycluster/{id_.cluster}/{id_.session}")
            ).status == 200
            assert await client.json(KEPT) == masked
            assert await client.json(SLASHED) == await client.json(SLASHED.rstrip("/")) == [1]
            answered = await client.get("/api/v0/shares?detail=1&team=a")
            assert answered.status == 404
            assert "x-raykeeper-as-of" in (await client.get(KEPT)).headers


async def test_the_newest_answer_in_our_layout_is_given_back_however_long_its_path(tmp_path: Path) -> None:
    store, session = local_store(tmp_path / "bucket"), PLAIN.session
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    record = SessionRecord(**names, started_at=PLAIN.started_at, recorded_at=PLAIN.started_at)
    await store.put(session_record_key(session), encode_record(record))
    path = f"/api/v0/shares?teams={'a,b,' * 100}"
    for number in (1, 2):
        answer = PolledAnswer(
            path=path, polled_at=PLAIN.started_at, status=200, body=polled_body(json.dumps(number).encode())
        )
        await store.put(PolledKey(session, polled_name(path), number).key, encode_polled(answer))
    async with built_server(tmp_path / "bucket", tmp_path / "cache") as app:
        assert (await ask(app, url_of(PLAIN) + path)).body == 2

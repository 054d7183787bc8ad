"""Real Ray is the oracle: what its dashboard said last, the history of the dead cluster says too.

Ray is ended by SIGTERM, as the kubelet does, or all of it by SIGKILL. `ray stop` would end every Ray on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from bed.fixtures import run_folder
from history.live.recorded_lives import End, RecordedLife, a_recorded_life
from support.answer_differences import Review, differences, read_reviewed, trace_by_task
from support.asking import ask
from support.whole_history import whole_server

REVIEWED = Path(__file__).parent / "live_differences.yaml"
FAILURES = {
    ("fail", "FAILED", "TASK_EXECUTION_EXCEPTION"),
    ("crash", "FAILED", "WORKER_DIED"),
    ("Broken.__ray_ready__", "FAILED", "ACTOR_DIED"),
    ("wait", "RUNNING", None),
    ("wait", "PENDING_NODE_ASSIGNMENT", None),
}
"""Some of what Ray must have said, or nothing was compared."""

pytestmark = [
    pytest.mark.bed,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="a worker's own folder needs a mount namespace, so root"),
]


@pytest.fixture(scope="module", params=["killed", "stopped"])
def life(request: pytest.FixtureRequest) -> Iterator[RecordedLife]:
    end = cast("End", request.param)
    folder = run_folder(request.config) / f"live-{end}-{os.getpid()}"
    folder.mkdir()
    with a_recorded_life(folder, end) as life:
        yield life


async def test_a_dead_cluster_says_what_ray_said_last_but_for_reviewed_differences(
    life: RecordedLife, tmp_path: Path
) -> None:
    review = Review(read_reviewed(REVIEWED))
    prefix = f"/s/{life.session.namespace}/{life.session.cluster}/{life.session.session}"
    async with whole_server(life.store, life.session, tmp_path) as app:
        for recorded in life.answers:
            answered = await ask(app, prefix + recorded.path)
            theirs, ours = recorded.body, answered.body
            if recorded.name.startswith("timeline"):
                theirs, ours = trace_by_task(theirs), trace_by_task(ours)
            whole = ({"status": recorded.status, "body": theirs}, {"status": answered.status, "body": ours})
            review.look_at(differences(recorded.name, *whole))
    assert not review.unexplained, "\n".join(map(str, review.unexplained))
    assert review.unused() == []
    assert {(row["name"], row["state"], row["error_type"]) for row in last_rows(life, "tasks")} >= FAILURES
    assert {row["state"] for row in last_rows(life, "actors")} == {"ALIVE", "DEAD"}


def last_rows(life: RecordedLife, kind: str) -> list[dict[str, Any]]:
    [answer] = [recorded.body for recorded in life.answers if recorded.name == f"state.{kind}"]
    rows: list[dict[str, Any]] = answer["data"]["result"]["result"]
    return rows

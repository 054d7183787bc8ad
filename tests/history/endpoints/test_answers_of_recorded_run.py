"""Ray is the oracle: a recorded run is asked everything that Ray was asked, and answers what Ray answered."""

from __future__ import annotations

from pathlib import Path

from answer_differences import Review, differences, read_reviewed, trace_by_task
from asking import ask
from goldensession import Moments, dashboard, golden_session
from raycapture import MOMENTS, RayCapture, Recorded

REVIEWED = Path(__file__).parent / "reviewed_differences.yaml"


async def test_every_answer_equals_rays_but_for_reviewed_differences(
    raycapture: RayCapture, ingested_moments: Moments
) -> None:
    review = Review(read_reviewed(REVIEWED))
    asked_paths = 0
    for moment in MOMENTS:
        async with golden_session(ingested_moments[moment]) as asked:
            app = dashboard(asked)
            for recorded in raycapture.requests(moment):
                if _is_of_the_server(recorded):
                    continue
                answered = await ask(app, recorded.path, method=recorded.method, headers=recorded.headers)
                theirs, ours = recorded.body, answered.body
                if recorded.name.startswith("timeline"):
                    theirs, ours = trace_by_task(theirs), trace_by_task(ours)
                whole = ({"status": recorded.status, "body": theirs}, {"status": answered.status, "body": ours})
                review.look_at(differences(recorded.name, *whole))
                asked_paths += 1
    assert [str(difference) for difference in review.unexplained] == []
    assert review.unused() == []
    assert asked_paths == 357


def _is_of_the_server(recorded: Recorded) -> bool:
    """Logs and files of the frontend need more than a session's tables: the server's own tests ask for them."""
    path = recorded.path.partition("?")[0]
    return path == "/" or path.startswith("/api/v0/logs") or (path.startswith("/api/jobs/") and path.endswith("/logs"))

"""Which tasks count: those of users, also where nothing says what they are."""

from __future__ import annotations

from pathlib import Path

from support.ingest_scene import base64_id, definition, finished_task, lifecycle, task_id
from support.report_scene import WORKER, report_of

QUESTION = "TrainStateActor.get_train_runs"


async def test_questions_of_the_dashboard_are_no_tasks_of_the_user(tmp_path: Path) -> None:
    events = [*finished_task(1), definition(task_id(2), name=QUESTION), lifecycle(task_id(2), [("FINISHED", 9)])]
    report = await report_of(tmp_path, events)
    assert report.counts.attempts == 1


async def test_tasks_of_a_driver_that_sends_no_events_are_counted_and_said(tmp_path: Path) -> None:
    undefined = [
        lifecycle(task_id(number, 2), [("RUNNING", 5), ("FINISHED", 9)], workerId=base64_id(WORKER), workerPid=7)
        for number in range(7)
    ]
    report = await report_of(tmp_path, [*finished_task(1), *undefined])
    assert report.counts.attempts == 1
    [text] = [unknown.text for unknown in report.unknown if unknown.what == "undefined tasks"]
    assert text.startswith("7 attempts of 1 job ran and are in no list")

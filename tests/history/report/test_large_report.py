"""A million tasks with 35,000 failures of 40 kinds: the report is quick, bounded in memory, and exact."""

from __future__ import annotations

import time
from pathlib import Path

from bed.waiting import BUSY_FACTOR
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database, DatabaseSettings
from raykeeper.history.report.make import GROUPS_LIMIT, make_report
from support.large_tables import FAILURES, KINDS, TASKS, large_session
from support.report_scene import failed, no_logs, report_of

REPORT_CPU_SECONDS = 1.3 * BUSY_FACTOR
"""With the look for logs of the first kinds. Processor time grows too while other tests fill the caches."""


async def test_a_million_tasks_are_reported_quickly_within_little_memory(tmp_path: Path) -> None:
    session = large_session(tmp_path)
    database = Database(tmp_path, DatabaseSettings(memory_bytes=200 << 20))
    try:
        began = time.process_time()
        report = await make_report(SessionContext(session, database, no_logs()))
        took = time.process_time() - began
    finally:
        await database.close()
    assert (report.counts.attempts, report.counts.failures, report.counts.ungrouped) == (TASKS, FAILURES, 0)
    assert len(report.groups) == KINDS
    assert {group.failures for group in report.groups} == {FAILURES // KINDS}
    assert all(len(group.nodes) <= 50 and len(group.functions) <= 20 for group in report.groups)
    assert took < REPORT_CPU_SECONDS


async def test_kinds_too_rare_to_be_listed_are_counted(tmp_path: Path) -> None:
    words = [f"{chr(107 + number // 10)}{chr(107 + number % 10)} broke" for number in range(GROUPS_LIMIT + 7)]
    report = await report_of(tmp_path, [one for number, word in enumerate(words) for one in failed(number, "X", word)])
    assert (len(report.groups), report.counts.failures, report.counts.ungrouped) == (GROUPS_LIMIT, GROUPS_LIMIT + 7, 7)


async def test_a_rare_root_cause_is_found_among_many_kinds_that_are_more_frequent(tmp_path: Path) -> None:
    words = [f"{chr(107 + number // 10)}{chr(107 + number % 10)} broke" for number in range(GROUPS_LIMIT + 7)]
    often = [one for number, word in enumerate(words * 2) for one in failed(number + 2, "X", word, seconds=20)]
    once = failed(1, "RUNTIME_ENV_SETUP_FAILED", "OSError: no package", seconds=5)
    report = await report_of(tmp_path, [*often, *once])
    assert report.root_cause is not None
    assert report.root_cause.rule == "failed_environment"
    assert "RUNTIME_ENV_SETUP_FAILED" not in {group.error_type for group in report.groups}

"""`raykeeper retention`, `hold` and `release`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from raykeeper.cli.app import app
from raykeeper.errors import Misconfigured, RaykeeperError
from support.retention_scene import SmallSession

OLD, OTHER = SmallSession("session_old"), SmallSession("session_other", "team-b", outcome="failed")
YOUNG = SmallSession("session_young", age=timedelta(days=1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for session in (OLD, OTHER, YOUNG):
        session.put_into(tmp_path / "store")
    (tmp_path / "keep.yaml").write_text("reader_wait: 0s\ndefault:\n  failed: 90d\n  succeeded: 7d\n")
    return tmp_path


def run(folder: Path, command: str, *more: str) -> Result:
    retention = [f"--retention={folder}/keep.yaml"] if command == "retention" else []
    return CliRunner().invoke(app, [command, f"--store=file://{folder}/store", *retention, *more])


def names_of(folder: Path) -> set[str]:
    return {path.name for path in (folder / "store/v1/data").glob("*/*/*") if any(path.rglob("*.json"))}


def test_a_dry_run_says_what_would_go_and_why_and_removes_nothing(folder: Path) -> None:
    before = {path for path in folder.rglob("*") if path.is_file()}
    said = run(folder, "retention", "--dry-run").output
    [row] = [line for line in said.splitlines() if "session_old" in line]
    assert row.split()[:2] == ["8d", "succeeded"]
    assert row.endswith("a session that succeeded is kept for 7 days")
    assert "would remove 1 of 3 sessions" in said
    assert [line.split()[-1] for line in said.splitlines() if line.strip().startswith("1 ")] == ["team-a"]
    assert {path for path in folder.rglob("*") if path.is_file()} == before
    assert run(folder, "retention").output == said


def test_applying_removes_it(folder: Path) -> None:
    said = run(folder, "retention", "--apply").output
    assert "removed 1 session" in said
    assert names_of(folder) == {"session_other", "session_young"}
    assert "nothing would be removed of 2 sessions" in run(folder, "retention").output


def test_a_held_session_is_not_removed_by_any_command(folder: Path) -> None:
    assert run(folder, "hold", str(OLD.id), "--reason=lawsuit").output == f"{OLD.id}: held\n"
    assert run(folder, "hold", str(OLD.id)).output == f"{OLD.id}: was held before\n"
    assert "nothing would be removed" in run(folder, "retention").output
    refused = run(folder, "delete", str(OLD.id), "--yes")
    assert isinstance(refused.exception, RaykeeperError)
    assert "lawsuit" in str(refused.exception)
    assert "is held, and stays" in run(folder, "delete", "--older-than=7d", "--yes").output
    assert "session_old" in names_of(folder)
    assert run(folder, "delete", str(OLD.id), "--yes", "--even-held").exit_code == 0
    assert "session_old" not in names_of(folder)
    assert isinstance(run(folder, "release", str(OLD.id)).exception, RaykeeperError)


def test_a_released_session_goes_when_its_time_comes(folder: Path) -> None:
    run(folder, "hold", str(OLD.id))
    assert run(folder, "release", str(OLD.id)).output == f"{OLD.id}: released\n"
    assert "would remove 1" in run(folder, "retention").output
    assert isinstance(run(folder, "hold", "team-a/train/none").exception, RaykeeperError)


def test_wrong_orders_are_told(folder: Path) -> None:
    assert isinstance(run(folder, "retention", "--apply", "--dry-run").exception, Misconfigured)
    (folder / "keep.yaml").write_text("default:\n  any: 3 days\n")
    refused = run(folder, "retention").exception
    assert isinstance(refused, Misconfigured)
    assert "line 2" in str(refused)

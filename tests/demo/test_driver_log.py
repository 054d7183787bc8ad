"""A script's output is shown once, line by line, whatever pieces it is written in."""

from __future__ import annotations

from pathlib import Path

from raykeeper.demo.driverlog import DriverLog


def test_lines_are_told_once_they_are_whole(tmp_path: Path) -> None:
    file = tmp_path / "job.log"
    log = DriverLog(file)
    assert log.new_lines() == []
    file.write_bytes(b"first\nsec")
    assert log.new_lines() == ["first"]
    file.write_bytes(b"first\nsecond\n\xff\nlast")
    assert log.new_lines() == ["second", "\N{REPLACEMENT CHARACTER}"]
    assert log.new_lines() == []
    assert log.rest() == ["last"]
    assert log.rest() == []


def test_a_job_that_never_ran_said_nothing(tmp_path: Path) -> None:
    assert DriverLog(tmp_path / "missing").rest() == []

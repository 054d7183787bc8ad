"""Log lines: constant message, values as fields, where and how the settings say."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raykeeper import logs
from raykeeper.api.meta import ObjectKey
from raykeeper.errors import Misconfigured
from raykeeper.logs import Log, LogSettings, set_up_logs

log = Log("raykeeper.test")


@pytest.fixture(autouse=True)
def _root_logger_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers.clear()
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_json_line_has_level_time_logger_message_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogSettings())
    log.info("worker pod created", pod="worker-1", replicas=3)
    [line] = json_lines(capsys.readouterr().out)
    timestamp = line.pop("ts")
    assert timestamp.endswith("Z")
    assert line == {
        "level": "info",
        "logger": "raykeeper.test",
        "msg": "worker pod created",
        "pod": "worker-1",
        "replicas": 3,
    }


def test_a_console_line_has_columns_and_the_fields_last(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogSettings(stdout_encoder="console"))
    log.warning("watch ended")
    log.warning("watch ended", cause="silent")
    bare, full = capsys.readouterr().out.splitlines()
    assert bare.split("\t")[1:] == ["WARNING", "raykeeper.test", "watch ended"]
    assert full.split("\t")[1:] == ["WARNING", "raykeeper.test", "watch ended", '{"cause":"silent"}']


def test_bound_fields_are_on_every_line_and_give_way_to_the_line_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogSettings())
    bound = log.bind(controller="raycluster", key="a")
    bound.info("one")
    bound.info("two", key="b")
    log.info("three")
    found = [(line.get("controller"), line.get("key")) for line in json_lines(capsys.readouterr().out)]
    assert found == [("raycluster", "a"), ("raycluster", "b"), (None, None)]


def test_any_word_can_be_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogSettings())
    log.bind(name="bound").error("refused", message="no role", self="me")
    [line] = json_lines(capsys.readouterr().out)
    assert (line["name"], line["message"], line["self"]) == ("bound", "no role", "me")


def test_a_key_is_written_as_it_prints_and_unknown_types_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogSettings())
    log.info("seen", cluster=ObjectKey("ns", "a"), path=Path("/x"), pods=["a", "b"])
    [line] = json_lines(capsys.readouterr().out)
    assert (line["cluster"], line["path"], line["pods"]) == ("ns/a", "/x", ["a", "b"])


@pytest.mark.parametrize("encoder", ["json", "console"])
def test_a_bug_comes_with_its_traceback(capsys: pytest.CaptureFixture[str], encoder: logs.Encoder) -> None:
    set_up_logs(LogSettings(stdout_encoder=encoder))
    try:
        int("three")
    except ValueError:
        log.exception("reconcile failed by a bug", key="a")
    out = capsys.readouterr().out
    assert "Traceback (most recent call last)" in out
    assert "ValueError: invalid literal" in out
    if encoder == "json":
        [line] = json_lines(out)
        assert "ValueError" in line["stacktrace"]


def test_lines_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogSettings(level="Warning"))
    log.debug("no")
    log.info("no")
    log.warning("yes")
    assert [line["msg"] for line in json_lines(capsys.readouterr().out)] == ["yes"]


def test_lines_of_libraries_look_like_ours(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogSettings())
    logging.getLogger("aiohttp").warning("closed %d connections", 3)
    [line] = json_lines(capsys.readouterr().out)
    assert (line["logger"], line["msg"]) == ("aiohttp", "closed 3 connections")


def test_a_file_gets_the_same_lines_in_its_own_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "operator.log"
    set_up_logs(LogSettings(stdout_encoder="console", file_path=path, file_encoder="json"))
    log.info("größer", size=1)
    assert "\tgrößer\t" in capsys.readouterr().out
    [line] = json_lines(path.read_text(encoding="utf-8"))
    assert line["msg"] == "größer"


def test_a_full_file_is_rotated_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FILE_MAX_BYTES", 1000)
    monkeypatch.setattr(logs, "FILE_KEPT", 2)
    set_up_logs(LogSettings(file_path=tmp_path / "operator.log"))
    for number in range(100):
        log.info("line", number=number)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["operator.log", "operator.log.1", "operator.log.2"]
    assert all(file.stat().st_size <= 1000 for file in files)
    assert json_lines(files[0].read_text())[-1]["number"] == 99


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"level": "loud"}, "log level='loud' cannot be used: use debug, info, warning or error"),
        ({"stdout_encoder": "xml"}, "stdout encoder='xml' cannot be used: use json or console"),
        ({"file_encoder": "xml"}, "file encoder='xml' cannot be used: use json or console"),
    ],
)
def test_a_wrong_setting_stops_by_name_and_opens_no_file(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "operator.log"
    with pytest.raises(Misconfigured) as caught:
        set_up_logs(replace(LogSettings(file_path=path), **change))
    assert str(caught.value) == sentence
    assert not path.exists()


def test_a_file_that_cannot_be_written_stops_by_name(tmp_path: Path) -> None:
    path = tmp_path / "no such folder" / "operator.log"
    with pytest.raises(
        Misconfigured, match=r"log file path=.* it must be a writable file \(No such file or directory\)"
    ):
        set_up_logs(LogSettings(file_path=path))

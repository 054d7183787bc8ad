"""The retention file: what it may say, and that a mistake is told by its line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.history.retention_policy import FOREVER, Outcome, parse_retention_policy
from raykeeper.history.sources import read_settings
from raykeeper.settings.yaml_file import YamlFileError

WHOLE = b"""
rules:
  - namespace: team-*
    failed: 90d
    succeeded: 7d
    sessions: 5000
    size: 1.5TB
  - namespace: audit
    keep: forever
  - namespace: lab
    failed: forever
    any: 12h
default:
  any: 26w
reader_wait: 15m
records: 30d
interval: 2h
"""


def test_every_member_is_read() -> None:
    policy = parse_retention_policy(WHOLE)
    team, lab = policy.rule_for("team-a"), policy.rule_for("lab")
    assert (team.age_of(Outcome.FAILED), team.age_of(Outcome.SUCCEEDED)) == (timedelta(days=90), timedelta(days=7))
    assert (team.age_of(Outcome.STOPPED), team.age_of(Outcome.UNKNOWN)) == (timedelta(days=90), timedelta(days=90))
    assert (team.max_sessions, team.max_bytes) == (5000, 1_500_000_000_000)
    assert policy.rule_for("audit").age_of(Outcome.SUCCEEDED) == FOREVER
    assert (lab.age_of(Outcome.STOPPED), lab.age_of(Outcome.UNKNOWN)) == (timedelta(hours=12), FOREVER)
    assert policy.rule_for("other").age_of(Outcome.UNKNOWN) == timedelta(weeks=26)
    assert (policy.reader_wait, policy.records) == (timedelta(minutes=15), timedelta(days=30))
    assert policy.interval == timedelta(hours=2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "line 1: it is empty"),
        (b"[]", "line 1: here must be names with values"),
        (b"records: 30d\n", "line 1: it has neither `rules` nor `default`"),
        (b"default:\n  any: 0d\n", "line 2: write hours, days or weeks"),
        (b"default:\n  any: 30 minutes\n", "line 2: write hours"),
        (b"default:\n  any: 99999999d\n", "line 2: write hours"),
        (b"default:\n  any: [1]\n", "line 2: here must be a text"),
        (b"default:\n  age: 30d\n", "line 2: 'age' is not known"),
        (b"default:\n  any: 30d\n  any: 31d\n", "line 3: 'any' is given twice"),
        (b"default: {}\n", "line 1: the rule has no limit"),
        (b"default:\n  keep: 30d\n", "line 2: keep can only be `forever`"),
        (b"default:\n  keep: forever\n  any: 3d\n", "line 2: keep can only be `forever`"),
        (b"rules: 3\n", "line 1: rules must be a list"),
        (b"rules:\n  - any: 30d\n", "line 2: the rule has no namespace"),
        (b"rules:\n  - namespace: a\n", "line 2: the rule has no limit"),
        (b"rules:\n  - namespace: a\n    sessions: 0\n", "line 3: here must be a whole number"),
        (b"rules:\n  - namespace: a\n    sessions: -4\n", "line 3: here must be a whole number"),
        (b"rules:\n  - namespace: a\n    size: 500\n", "line 3: write a size"),
        (b"rules:\n  - namespace: a\n    size: 0GB\n", "line 3: write a size"),
        (b"default:\n  any: 30d\ninterval: 0s\n", "line 3: the time between two sweeps"),
        (b"default:\n  any: 30d\nreader_wait: soon\n", "line 3: write seconds"),
        (b"default: {any: 30d\n", "no YAML"),
        (b"default:\n  any: \xff\n", "no YAML"),
        (b"default: {any: 30d}\n#" + b"x" * 200_000, "it is longer than"),
    ],
)
def test_a_mistake_is_told_by_its_line(text: bytes, told: str) -> None:
    with pytest.raises(YamlFileError) as refused:
        parse_retention_policy(text)
    assert told in str(refused.value)


def test_a_wrong_file_stops_the_start_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "retention.yaml"
    file.write_text("default:\n  any: soon\n")
    with pytest.raises(Misconfigured) as refused:
        read_settings([f"--retention={file}", "--store=file:///nowhere"], {})
    assert "line 2" in str(refused.value)
    assert "--retention" in str(refused.value)
    with pytest.raises(Misconfigured, match="it must be a readable file"):
        read_settings(["--store=file:///nowhere"], {"RAYKEEPER_RETENTION": str(tmp_path / "none.yaml")})


def test_the_file_becomes_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "retention.yaml"
    file.write_bytes(WHOLE)
    settings = read_settings(["--store=file:///nowhere"], {"RAYKEEPER_RETENTION": str(file)})
    assert settings.retention == parse_retention_policy(WHOLE)
    assert read_settings(["--store=file:///nowhere"], {}).retention is None

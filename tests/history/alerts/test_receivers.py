"""The file of `--alerts`: what it may say, and that mistakes are told by their line and secrets by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykeeper.history.alert_receivers import AlertSettings, SecretMissing, parse_alerts
from raykeeper.history.sources import read_settings
from raykeeper.settings.yaml_file import YamlFileError

HOOK = "https://hooks.slack.com/services/T000/B000/s3cr3tpart"


def parsed(text: str, **environment: str) -> AlertSettings:
    return parse_alerts(text.encode(), environment)


def test_receivers_have_filters_and_secrets_out_of_files_and_variables(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(HOOK + "\n")
    text = f"""
link: https://history.example.com/
timing: {{settle_seconds: 5}}
receivers:
- {{name: team-a, kind: slack, url_file: {tmp_path}/url, namespaces: [team-a], clusters: ["train-*"]}}
- {{name: ops, kind: webhook, url: "https://ops.example.com/x", bearer_env: OPS, outcomes: [failed, with failures]}}
- {{name: am, kind: alertmanager, url: "http://alertmanager.monitoring:9093", causes: [out_of_memory]}}
"""
    settings = parsed(text, OPS="t0ken-of-ops")
    slack, ops, manager = settings.receivers
    assert settings.link == "https://history.example.com"
    assert settings.timing.settle_seconds == 5
    assert slack.url() == HOOK
    assert slack.wants_cluster("team-a", "train-1")
    assert not slack.wants_cluster("team-b", "train-1")
    assert not slack.wants_cluster("team-a", "serve")
    assert ops.bearer is not None
    assert ops.bearer.read() == "t0ken-of-ops"
    assert ops.outcomes == ("failed", "with failures")
    assert manager.wants_cause("out_of_memory")
    assert not manager.wants_cause("")


def test_a_renewed_secret_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(HOOK)
    [receiver] = parsed(f"receivers: [{{name: a, kind: slack, url_file: {file}}}]").receivers
    file.write_text(HOOK + "2")
    assert receiver.url() == HOOK + "2"
    file.write_text("https://user:pw@example.com")
    with pytest.raises(SecretMissing, match="neither a user") as refused:
        receiver.url()
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: it is empty; it needs `receivers`"),
        ("link: https://x", "line 1: receivers is missing"),
        ("receivers: []", "line 1: receivers must be a list"),
        ("receivers: [{name: a}]", "a receiver needs a kind"),
        ("receivers:\n- {name: a, kind: pager}", "line 2: kind must be one of webhook, slack, alertmanager"),
        ("receivers: [{name: A_b, kind: webhook, url: 'https://x'}]", "a name has at most 40"),
        ("receivers: [{name: a, kind: webhook}]", "give one of url, url_file and url_env"),
        ("receivers: [{name: a, kind: webhook, url: 'ftp://x'}]", "use a URL with http or https"),
        ("receivers: [{name: a, kind: slack, url: 'https://x'}]", "the URL is a secret with Slack"),
        ("receivers: [{name: a, kind: slack, url_env: NOPE}]", "variable NOPE must hold one line"),
        ("receivers: [{name: a, kind: webhook, url: 'http://x.example', bearer_env: B}]", "use https"),
        ("receivers: [{name: a, kind: webhook, url: 'https://x', outcomes: [ok]}]", "'ok' is no outcome"),
        ("receivers: [{name: a, kind: webhook, url: 'https://x', colour: red}]", "'colour' is not known"),
        ("timing: {retry_seconds: 5}\nreceivers: [{name: a, kind: webhook, url: 'https://x'}]", "at least twice"),
        (
            "timing: {look_seconds: .nan}\nreceivers: [{name: a, kind: webhook, url: 'https://x'}]",
            "a number of seconds",
        ),
        (
            "receivers:\n- {name: a, kind: webhook, url: 'https://x'}\n- {name: a, kind: webhook, url: 'https://y'}",
            "line 3: there are two receivers 'a'",
        ),
    ],
)
def test_a_mistake_is_told_by_its_line(text: str, problem: str) -> None:
    with pytest.raises(YamlFileError) as refused:
        parsed(text, B="a-bearer-token")
    assert problem in str(refused.value)
    assert "a-bearer-token" not in str(refused.value)


def test_the_flag_and_the_variable_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text("receivers: [{name: a, kind: webhook, url: 'https://x'}]")
    by_flag = read_settings([f"--alerts={file}", "--store=file:///tmp/x"], {})
    by_variable = read_settings(["--store=file:///tmp/x"], {"RAYKEEPER_ALERTS": str(file)})
    assert by_flag.alerts == by_variable.alerts
    assert by_flag.alerts is not None
    assert read_settings(["--store=file:///tmp/x"], {}).alerts is None

"""What `kubectl raykeeper` prints: readable, and harmless whatever a pod says."""

from __future__ import annotations

from datetime import UTC, datetime

from raykeeper.client.diagnosis import Diagnosis, EventSeen, Health, PodSeen
from raykeeper.plugin.screen import age, diagnosis_lines, harmless, report_lines, write_lines
from raykeeper.plugin.support import masked_log, masked_object

NOW = datetime(2026, 11, 17, 21, 0, tzinfo=UTC)
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabcdef\n-----END RSA PRIVATE KEY-----"


def test_codes_for_the_terminal_and_secrets_never_pass() -> None:
    assert harmless("a\x1b[31mred\x1b[0m\x07 line\nnext \x9b2J") == "ared  line next  2J"
    assert harmless("AWS_SECRET_ACCESS_KEY=abcdefghijkl") == "AWS_SECRET_ACCESS_KEY=<redacted>"
    assert len(harmless("x" * 10_000)) == 401


def test_colours_are_written_only_where_they_are_wanted() -> None:
    for has_colours, expected in ((True, ["\x1b[31mbad\x1b[0m\n", "fine\n"]), (False, ["bad\n", "fine\n"])):
        written: list[str] = []
        write_lines([("bad", "red"), ("fine", "")], written.append, has_colours=has_colours)
        assert written == expected


def test_a_screen_has_everything_about_an_object() -> None:
    pod = PodSeen(
        "demo-head", "head", "headgroup", "Pending", False, 2, "node-1", "2026-11-17T20:50:00Z", ("ray waits: X",)
    )
    event = EventSeen("2026-11-17T20:59:00Z", "Warning", "Failed", "no image", "Pod/demo-head", 7)
    seen = Diagnosis(
        "RayCluster",
        "team",
        "demo",
        Health.WAITING,
        "",
        created_at="2026-11-17T18:00:00Z",
        waits_for=("0 of 4 workers are ready",),
        facts=(("Ray", "2.60.0"),),
        pods=(pod,),
        events=(event,),
        unread=("nodes: forbidden",),
    )
    text = "\n".join(line for line, _ in diagnosis_lines(seen, NOW))
    assert text == "\n".join(
        [
            "RayCluster team/demo: waiting, 3h old",
            "  Ray  2.60.0",
            "",
            "What it waits for",
            "  0 of 4 workers are ready",
            "",
            "Pods",
            "  demo-head  head: Pending, 2 restarts, 10m on node-1",
            "      ray waits: X",
            "",
            "Last events",
            "  60s ago  Pod/demo-head  Failed: no image (x7)",
            "",
            "Could not be read: nodes: forbidden",
        ]
    )


def test_of_many_pods_those_with_problems_are_shown() -> None:
    pods = [PodSeen(f"w-{n:03}", "worker", "g", "Running", True, 0, "", "") for n in range(100)]
    pods.append(PodSeen("w-bad", "worker", "g", "Pending", False, 0, "", "", ("it has no node",)))
    seen = Diagnosis("RayCluster", "team", "demo", Health.WAITING, "", pods=tuple(pods))
    text = [line for line, _ in diagnosis_lines(seen, NOW)]
    assert any("w-bad" in line for line in text)
    assert "  … and 81 more" in text


def test_ages_are_short() -> None:
    times = ("2026-11-17T20:59:30Z", "2026-11-17T20:30:00Z", "2026-11-17T10:00:00Z", "2026-11-10T10:00:00Z", "", "x")
    assert [age(time, NOW) for time in times] == ["30s", "30m", "11h", "7d", "?", "?"]


def test_a_report_of_another_version_is_shown_as_far_as_it_is_known() -> None:
    assert [line for line, _ in report_lines({"outcome": "odd"})] == ["odd: "]


def test_an_object_in_an_archive_has_no_secret() -> None:
    container = {
        "env": [
            {"name": "FAVOURITE", "value": "hunter2"},
            {"name": "RAY_CLUSTER_NAME", "value": "demo"},
            {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "args": ["--redis-password", "hunter2"],
    }
    item = {
        "kind": "RayJob",
        "metadata": {
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"env": "hunter2"}', "a": "b"},
            "managedFields": [{"hunter2": {}}],
        },
        "spec": {
            "entrypoint": "python job.py --api-key hunter2",
            "runtimeEnvYAML": "env_vars:\n  ANY: hunter2\npip: [numpy]\n",
            "serveConfigV2": "applications:\n- runtime_env:\n    env_vars: {ANY: hunter2}\n",
            "rayClusterSpec": {
                "headGroupSpec": {
                    "rayStartParams": {"redis-password": "hunter2", "num-cpus": "1"},
                    "template": {"spec": {"containers": [container]}},
                }
            },
        },
        "data": {"password.txt": "hunter2"},
    }
    masked = masked_object(item)
    assert "hunter2" not in str(masked)
    spec = masked["spec"]["rayClusterSpec"]["headGroupSpec"]
    kept = spec["template"]["spec"]["containers"][0]["env"]
    assert kept[1]["value"] == "demo"
    assert kept[2]["valueFrom"] == {"secretKeyRef": {"name": "s", "key": "k"}}
    assert spec["rayStartParams"]["num-cpus"] == "1"
    assert "numpy" in masked["spec"]["runtimeEnvYAML"]
    assert masked["metadata"]["annotations"] == {"a": "b"}


def test_yaml_that_cannot_be_read_is_masked_as_a_whole() -> None:
    assert masked_object({"runtimeEnvYAML": "{unbalanced: hunter2"}) == {"runtimeEnvYAML": "<redacted>"}


def test_a_log_in_an_archive_has_no_key_and_no_half_line() -> None:
    text = masked_log(f"start\n{PRIVATE_KEY}\ntoken=abcdefgh\nend".encode())
    assert "MIIEow" not in text
    assert "abcdefgh" not in text
    assert text.startswith("start\n")
    cut = masked_log(b"password=" + b"s" * (2 << 20) + b"\nlast line")
    assert cut == "last line"

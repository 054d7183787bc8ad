"""The operator's flags are KubeRay's, each told with a default that it accepts."""

from __future__ import annotations

import pytest

from raykeeper.operator.flags import FLAGS
from raykeeper.settings.arguments import parse_arguments
from raykeeper.settings.flags import Flag


def test_what_kuberays_chart_renders_in_flag_mode_is_understood() -> None:
    rendered = [
        "--watch-namespace", "team-a,team-b", "--log-file-path", "/logs/operator.log", "--log-stdout-encoder", "json",
        "--log-file-encoder", "json", "--use-kubernetes-proxy=false", "--enable-leader-election=true",
        "--enable-metrics=true", "--reconcile-concurrency=1", "--qps=100", "--burst=200", "--feature-gates=A=true",
    ]  # fmt: skip
    assert len(parse_arguments(FLAGS, rendered)) == 11


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_is_documented_with_a_default_it_accepts(flag: Flag) -> None:
    assert flag.help.endswith(".")
    assert flag.default == "" or flag.parse(flag.spelling, flag.default) is not None

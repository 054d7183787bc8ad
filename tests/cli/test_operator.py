"""`raykeeper operator` from outside: its help, and what ends it at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from raykeeper.cli.app import app
from raykeeper.cli.main import to_arguments
from raykeeper.operator.environment import VARIABLES
from raykeeper.operator.flags import FLAGS
from raykeeper.operator.gates import Gate
from support.operator_processes import run_command


@pytest.mark.parametrize("argument", ["-h", "-help", "--help"])
def test_the_help_tells_every_flag_gate_and_variable(argument: str) -> None:
    outcome = CliRunner().invoke(app, ["operator", argument])
    assert outcome.exit_code == 0
    words = outcome.output.split()
    assert {flag.spelling for flag in FLAGS} <= set(words)
    assert {f"{gate.value.name}={str(gate.value.is_on).lower()}" for gate in Gate} <= set(words)
    assert VARIABLES.keys() <= set(words)


@pytest.mark.parametrize(
    ("argv", "arguments"),
    [
        (["/usr/bin/raykeeper", "operator", "--qps=5"], ["operator", "--qps=5"]),
        (["/manager", "--qps=5"], ["operator", "--qps=5"]),
        (["manager"], ["operator"]),
        (["raykeeper"], []),
    ],
)
def test_under_the_name_of_kuberays_program_it_is_the_operator(argv: list[str], arguments: list[str]) -> None:
    assert to_arguments(argv) == arguments


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        (["--qps=fast"], {}, "--qps='fast' cannot be used: use a number"),
        (["--enable-metrics", "false"], {}, "argument='false' cannot be used: it is no flag"),
        (["--no-such-flag"], {}, "flag='--no-such-flag' cannot be used: there is no such flag"),
        (["--feature-gates=RayClusterMTLS=true"], {}, "--feature-gates='RayClusterMTLS=true' cannot be used"),
        (
            ["--feature-gates=KubernetesWAS=true", "--batch-scheduler=volcano"],
            {},
            "--feature-gates='KubernetesWAS=true' cannot be used: --batch-scheduler asks for volcano",
        ),
        (["--batch-scheduler=slurm"], {}, "--batch-scheduler='slurm' cannot be used: there is no such scheduler"),
        (["--config=/no/such/file"], {}, "--config='/no/such/file' cannot be used: it cannot be read"),
        ([], {"ENABLE_WEBHOOKS": "true"}, "ENABLE_WEBHOOKS='true' cannot be used: this version has no webhooks"),
        (["--log-file-path=/no/such/folder/log"], {}, "log file path='/no/such/folder/log' cannot be used"),
    ],
)
def test_what_cannot_be_used_ends_it_with_2_and_one_line(
    arguments: list[str], variables: dict[str, str], complaint: str
) -> None:
    outcome = run_command(*arguments, **variables)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"raykeeper: {complaint}")
    assert outcome.stderr.count("\n") == 1


def test_a_kubeconfig_that_is_not_there_ends_it_with_2_and_one_line(tmp_path: Path) -> None:
    outcome = run_command(f"--kubeconfig={tmp_path}/missing", "--metrics-addr=0", "--health-probe-bind-address=0")
    assert (outcome.returncode, outcome.stderr) == (2, "")
    assert f"{tmp_path}/missing" in outcome.stdout
    assert outcome.stdout.count("\n") == 1

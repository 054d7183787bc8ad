"""The submitter's command line is that of KubeRay's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from raykeeper.cli.main import run_command, to_arguments
from raykeeper.errors import Misconfigured
from raykeeper.ray.credentials import PROJECTED_TOKEN_FILE, StaticToken, TokenFile
from raykeeper.submitter.settings import read_settings

VARIABLES = {"RAY_DASHBOARD_ADDRESS": "head:8265", "RAY_JOB_SUBMISSION_ID": "mine"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runtime-env-json", '{"a": 1}', "--entrypoint-num-cpus=0.5", "--", "python", "job.py", "--help"],
        ['--runtime-env-json={"a": 1}', "--entrypoint-num-cpus", "0.5", "python", "job.py", "--help"],
    ],
)
def test_flags_come_first_and_the_rest_is_the_entrypoint(arguments: list[str]) -> None:
    job = read_settings(arguments, VARIABLES).job
    assert (job.submission_id, job.entrypoint) == ("mine", "python job.py --help")
    assert (job.runtime_env, job.entrypoint_num_cpus) == ({"a": 1}, 0.5)


def test_one_word_is_the_whole_entrypoint_as_it_is_written() -> None:
    assert read_settings(["--", "echo 'a  b' && ls"], VARIABLES).job.entrypoint == "echo 'a  b' && ls"


@pytest.mark.parametrize(
    ("arguments", "left_out", "named"),
    [
        (["--", "x"], "RAY_DASHBOARD_ADDRESS", "RAY_DASHBOARD_ADDRESS"),
        (["--", "x"], "RAY_JOB_SUBMISSION_ID", "RAY_JOB_SUBMISSION_ID"),
        ([], "", "entrypoint"),
        (["--"], "", "entrypoint"),
        (["--runtime-env-json", "[1]", "--", "x"], "", "--runtime-env-json"),
        (["--metadata-json", '{"a": 1}', "--", "x"], "", "--metadata-json"),
        (["--entrypoint-resources", "{", "--", "x"], "", "--entrypoint-resources"),
        (["--entrypoint-num-gpus", "many", "--", "x"], "", "--entrypoint-num-gpus"),
        (["--unknown", "1", "--", "x"], "", "--unknown"),
    ],
)
def test_what_is_wrong_or_missing_is_named(arguments: list[str], left_out: str, named: str) -> None:
    variables = {name: text for name, text in VARIABLES.items() if name != left_out}
    with pytest.raises(Misconfigured, match=named):
        read_settings(arguments, variables)


def test_the_token_comes_from_a_variable_or_from_a_file_that_is_renewed() -> None:
    assert read_settings(["x"], VARIABLES | {"RAY_AUTH_TOKEN": "t"}).credentials == StaticToken("t")
    assert read_settings(["x"], VARIABLES | {"RAY_AUTH_TOKEN_PATH": "/t"}).credentials == TokenFile(Path("/t"))
    by_kubernetes = VARIABLES | {"RAY_AUTH_MODE": "token", "RAY_ENABLE_K8S_TOKEN_AUTH": "true"}
    assert read_settings(["x"], by_kubernetes).credentials == TokenFile(PROJECTED_TOKEN_FILE)


def test_it_needs_nothing_of_the_other_programs_to_start() -> None:
    loads = "import sys, raykeeper.submitter.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "websockets", "uvloop", "yaml", "typer", "prometheus_client", "kubernetes"} & set(loaded)


def test_it_starts_by_the_name_submitter_and_help_is_for_flags_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert to_arguments(["/submitter", "--", "x"]) == ["submitter", "--", "x"]
    with pytest.raises(Misconfigured, match="RAY_JOB_SUBMISSION_ID"):
        run_command(["submitter", "--", "python", "job.py", "--help"])
    with pytest.raises(SystemExit):
        run_command(["submitter", "--help"])
    assert "--runtime-env-json" in capsys.readouterr().out

"""`raykeeper crds` prints what kubectl takes."""

from __future__ import annotations

import json
import subprocess
import sys

import yaml
from typer.testing import CliRunner

from raykeeper.cli.app import app
from raykeeper.cli.main import main

PRINT_CRDS = """
import sys
from raykeeper.cli.app import app
app(["crds"], prog_name="raykeeper", standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["crds", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_all_kinds_are_printed_as_yaml_documents() -> None:
    documents = yaml.load_all(printed(), Loader=yaml.CSafeLoader)
    assert [document["spec"]["names"]["kind"] for document in documents] == [
        "RayCluster",
        "RayCronJob",
        "RayJob",
        "RayService",
    ]


def test_one_kind_is_printed_when_it_is_named() -> None:
    (document,) = yaml.load_all(printed("raycluster"), Loader=yaml.CSafeLoader)
    assert document["metadata"]["name"] == "rayclusters.ray.io"


def test_json_is_one_list_that_says_the_same() -> None:
    printed_list = json.loads(printed("--format", "json"))
    assert printed_list["kind"] == "List"
    assert printed_list["items"] == list(yaml.load_all(printed(), Loader=yaml.CSafeLoader))


def test_an_unknown_kind_is_one_line_and_exit_code_2() -> None:
    command = [sys.executable, "-c", f"from {main.__module__} import main; main()", "crds", "rayfish"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("raykeeper: NAMES='rayfish' cannot be used")


def test_printing_reads_files_instead_of_making_them() -> None:
    outcome = subprocess.run([sys.executable, "-c", PRINT_CRDS], capture_output=True, text=True, check=True)
    assert not {"msgspec", "yaml", "aiohttp"} & set(outcome.stderr.split())

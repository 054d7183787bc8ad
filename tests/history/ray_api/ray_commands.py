"""Ray's own command line in Ray's own Python: runs the commands given as JSON on stdin, one after the other."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

runner = import_module("click.testing").CliRunner()
ray_cli = import_module("ray.scripts.scripts").cli
serve_cli = import_module("ray.serve.scripts").cli


def run(command: list[str]) -> dict[str, Any]:
    program = {"ray": ray_cli, "serve": serve_cli}[command[0]]
    result = runner.invoke(program, command[1:])
    return {"exit_code": result.exit_code, "output": result.output, "error": repr(result.exception)}


def main() -> None:
    answers = [run(command) for command in json.load(sys.stdin)]
    sys.__stdout__.write("\n" + json.dumps(answers) + "\n")  # type: ignore[union-attr]  # there is one


main()

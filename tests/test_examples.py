"""The examples work as they are: the API server takes the manifests, programs their arguments, and scripts run."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from bed.control_plane import ControlPlane
from demo.running_demo import running_demo
from raykeeper.api.raycluster import RayCluster
from raykeeper.history.sources import read_settings
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.gates import Gate, parse_gates
from raykeeper.operator.raycluster.validation.validate import violations, warnings

EXAMPLES = Path(__file__).parent.parent / "examples"
MANIFESTS = sorted(EXAMPLES.glob("*.yaml"))
GATES = parse_gates(f"{Gate.HISTORY_SERVER.value.name}=true")
PLAIN = ApiServerFacts((1, 36), is_openshift=False)
DEMO_SECONDS = 240.0  # four times what it takes when nobody else uses the cores


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def test_the_readme_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text()
    files = [path.name for path in EXAMPLES.iterdir() if path.name != "README.md"]
    assert [name for name in files if f"({name})" not in text] == []


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_operator_has_nothing_to_say_against_a_cluster(path: Path) -> None:
    for manifest in documents(path):
        if manifest["kind"] == "RayCluster":
            manifest["metadata"]["namespace"] = "default"
            cluster = msgspec.convert(manifest, RayCluster)
            assert violations(cluster, GATES, PLAIN) == []
            assert list(warnings(cluster)) == []


def test_the_history_server_takes_its_arguments(tmp_path: Path) -> None:
    [deployment, _] = documents(EXAMPLES / "history-server.yaml")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable.get("value", "secret") for variable in container["env"]}
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length")
    arguments = [argument.replace("/var/run/raykeeper/token", str(token)) for argument in container["args"]]
    settings = read_settings(arguments, variables)
    assert settings.store.backend == "s3"


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_api_server_takes_a_manifest(path: Path, ray_crds: ControlPlane) -> None:
    ray_crds.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(path))


@pytest.mark.bed
def test_the_report_about_a_script_names_the_line_that_failed(tmp_path: Path) -> None:
    with running_demo(tmp_path, ["python", str(EXAMPLES / "flaky_tasks.py")]) as demo:
        demo.wait_for("Ctrl-C ends the history server", DEMO_SECONDS)
        assert "price: KeyError: 'durian'" in demo.output
        assert demo.end(signal.SIGTERM) == 1

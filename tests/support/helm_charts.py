"""A chart of ours, rendered by Helm over a table of values and read by a real API server."""

from __future__ import annotations

import copy
import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.helm import helm

ROOT: Final = Path(__file__).parents[2]
Json = dict[str, Any]
RANDOM: Final = "a random token"
TOKENS: Final = {"SECURITY_TOKEN": 40, "token": 40, "keys": 48}
"""Keys of Secrets that charts make up, with the length of each."""


@dataclass(frozen=True)
class Chart:
    """One chart, and the table of values that it is tested with."""

    name: str

    @property
    def folder(self) -> Path:
        return ROOT / "helm-chart" / self.name

    @property
    def golden(self) -> Path:
        return ROOT / "tests" / "golden" / "charts" / self.name

    @property
    def cases(self) -> dict[str, Any]:
        """Each entry is a `helm install`: its release, its namespace, and what it sets."""
        table = ROOT / "tests" / "charts" / f"{self.name}.yaml"
        return dict(yaml.safe_load(table.read_text()))

    def run(self, values: Json, namespace: str = "default", release: str = "") -> subprocess.CompletedProcess[str]:
        """What `helm template` says, whether it likes the values or not."""
        arguments = ["template", release or self.name, str(self.folder), "--namespace", namespace, "--values", "-"]
        return subprocess.run(
            [helm(), *arguments], input=yaml.safe_dump(values), capture_output=True, text=True, check=False
        )

    def render(self, values: Json, namespace: str = "default", release: str = "") -> list[Json]:
        """The objects that these values make."""
        outcome = self.run(values, namespace, release)
        assert outcome.returncode == 0, outcome.stderr
        return [document for document in yaml.load_all(outcome.stdout, yaml.CSafeLoader) if document]

    def rendered(self, case: str) -> list[Json]:
        """The objects of one case of the table."""
        return _rendered(self, case)

    def refusal(self, values: Json) -> str:
        """What Helm says against these values."""
        outcome = self.run(values)
        assert outcome.returncode != 0, outcome.stdout
        return outcome.stderr

    def lint(self) -> None:
        subprocess.run([helm(), "lint", "--strict", self.folder], check=True, capture_output=True)


@functools.cache
def _rendered(chart: Chart, case: str) -> list[Json]:
    wanted = chart.cases[case]
    return chart.render(wanted.get("values", {}), wanted.get("namespace", "default"), wanted.get("release", ""))


def the(documents: list[Json], kind: str, name: str) -> Json:
    """The one object of this kind and name."""
    (found,) = (item for item in documents if item["kind"] == kind and item["metadata"]["name"] == name)
    return found


def without_random_tokens(documents: list[Json], case: Json) -> list[Json]:
    """The objects, with what is different at every rendering told apart from what the case says."""
    documents = copy.deepcopy(documents)
    for item in documents:
        for name, length in TOKENS.items():
            if item["kind"] == "Secret" and item["stringData"].get(name, "") not in str(case):
                assert len(item["stringData"][name]) == length
                item["stringData"][name] = RANDOM
    return documents


def assert_accepted(plane: ControlPlane, documents: list[Json]) -> None:
    """A real API server would take all of these objects, and knows every field in them."""
    server = [str(binary("kubectl")), "--kubeconfig", str(plane.admin_kubeconfig)]
    outcome = subprocess.run(
        [*server, "create", "--dry-run=server", "--validate=strict", "-f", "-"],
        input=yaml.dump_all(documents, Dumper=yaml.CSafeDumper),
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr

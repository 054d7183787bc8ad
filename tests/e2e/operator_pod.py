"""The operator as a pod: an image with Debian's Python and our package in it, a ServiceAccount, and what it may do."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

import raykeeper
from bed.node.image import one_program_image
from bed.rest import Json
from e2e.cluster import a_pod
from operator_rights import RULES, granted

OPERATOR = "raykeeper-operator"
OPERATOR_IMAGE = "bed.local/raykeeper:1"
PACKAGES = Path("/usr/local/lib/python3.11/dist-packages")
COMMAND = ("python3", "-m", "raykeeper.cli.main", "operator")


def operator_image() -> Path:
    """The archive of an image whose Python has raykeeper and all it needs."""
    parts = {str(PACKAGES / path.name): path for path in _installed_parts("raykeeper", set())}
    ours = Path(raykeeper.__file__).parent
    return one_program_image(
        OPERATOR_IMAGE, parts | {str(PACKAGES / ours.name): ours}, entrypoint=COMMAND, on_base=True, user="65534"
    )


def operator_objects(namespace: str) -> list[tuple[str, Json]]:
    """What an installation consists of, each with the collection it goes to; it watches its own namespace."""
    subject = {"kind": "ServiceAccount", "name": OPERATOR, "namespace": namespace}
    return [
        (f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": OPERATOR}}),
        # Cluster-wide names: the namespace keeps those of two tests apart.
        *granted(f"{OPERATOR}-{namespace}", RULES, subject),
        (f"/api/v1/namespaces/{namespace}/pods", _pod(namespace)),
    ]


def _pod(namespace: str) -> Json:
    probe = {"httpGet": {"path": "/readyz", "port": 8082}, "periodSeconds": 1}
    limits = {"cpu": "1", "memory": "512Mi"}  # as in KubeRay's chart, with its memory
    command = [*COMMAND, f"--watch-namespace={namespace}"]
    pod = a_pod(OPERATOR, command, image=OPERATOR_IMAGE, readinessProbe=probe, resources={"limits": limits})
    pod["spec"]["serviceAccountName"] = OPERATOR
    return pod


def _installed_parts(name: str, seen: set[str]) -> Iterator[Path]:
    """The files and folders in site-packages of a distribution and of all that it requires."""
    if name in seen:
        return
    seen.add(name)
    found = distribution(name)
    yield from _top_level(found)
    for requirement in map(Requirement, found.requires or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield from _installed_parts(requirement.name, seen)


def _top_level(found: Distribution) -> set[Path]:
    """Where its files are, but for commands, which lie outside of the packages."""
    names = {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}
    return {Path(str(found.locate_file(name))) for name in names if not name.endswith(".pth")}

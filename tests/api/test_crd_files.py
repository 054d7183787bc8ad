"""The committed CRDs are what the types say, small enough for `kubectl apply`, and part of the package."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from raykeeper.api.crd.definition import definition_of
from raykeeper.api.crd.files import CRD_FOLDER, crd_files, find_crd_files
from raykeeper.api.crd.kinds import KINDS, Kind
from raykeeper.api.crd.kubernetes import KubernetesTypes
from raykeeper.api.crd.rendering import to_yaml
from raykeeper.api.meta import JSON
from raykeeper.errors import Misconfigured

PROJECT = Path(__file__).parents[2]
ANNOTATIONS_LIMIT = 256 * 1024  # Kubernetes' limit on all annotations of an object together
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)


def committed(kind: Kind) -> JSON:
    crd: JSON = yaml.load((CRD_FOLDER / kind.file_name).read_bytes(), Loader=yaml.CSafeLoader)
    return crd


@EACH_KIND
def test_a_committed_file_is_what_the_types_say(kind: Kind) -> None:
    generated = to_yaml(definition_of(kind, KubernetesTypes.committed()))
    assert (CRD_FOLDER / kind.file_name).read_text() == generated, "run `make generate`"


@EACH_KIND
def test_yaml_keeps_the_definition_as_it_is(kind: Kind) -> None:
    assert committed(kind) == definition_of(kind, KubernetesTypes.committed())


@EACH_KIND
def test_kubectl_apply_can_note_the_whole_definition_in_an_annotation(kind: Kind) -> None:
    # kubectl notes the manifest as compact JSON with an empty annotations map and a line feed.
    noted = committed(kind)
    noted["metadata"]["annotations"] = {}
    assert len(LAST_APPLIED) + len(json.dumps(noted, separators=(",", ":"))) + 1 < ANNOTATIONS_LIMIT


def test_there_is_one_file_per_kind_and_no_other() -> None:
    assert sorted(path.name for path in CRD_FOLDER.iterdir()) == sorted(kind.file_name for kind in KINDS)


@EACH_KIND
def test_names_and_versions_are_kuberays(kind: Kind) -> None:
    crd = committed(kind)
    assert crd["metadata"]["name"] == f"{kind.resource.plural}.ray.io"
    spec = crd["spec"]
    assert (spec["group"], spec["scope"], "conversion" in spec) == ("ray.io", "Namespaced", False)
    assert spec["names"] == {
        "categories": ["all"],
        "kind": kind.resource.kind,
        "listKind": f"{kind.resource.kind}List",
        "plural": kind.resource.plural,
        "singular": kind.resource.kind.lower(),
    }
    versions = {version["name"]: version for version in spec["versions"]}
    assert list(versions) == (["v1"] if kind.resource.kind == "RayCronJob" else ["v1", "v1alpha1"])
    assert all(version["served"] and version["subresources"] == {"status": {}} for version in spec["versions"])
    assert [version["storage"] for version in spec["versions"]] == [True, False][: len(versions)]
    assert [version.get("deprecated", False) for version in spec["versions"]] == [False, True][: len(versions)]


@pytest.mark.parametrize("name", ["rayjobs", "RayJob", "rayjob", "rayjobs.ray.io"])
def test_a_file_is_found_by_any_name_of_its_kind(name: str) -> None:
    assert find_crd_files([name]) == [CRD_FOLDER / "ray.io_rayjobs.yaml"]


def test_all_files_are_found_when_none_is_named() -> None:
    assert find_crd_files([]) == list(crd_files().values())


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(Misconfigured, match="'rayfish' cannot be used: the kinds are rayclusters, raycronjobs"):
        find_crd_files(["rayfish"])


def test_a_wheel_has_them_and_the_charts_whether_built_from_a_checkout_or_from_an_sdist(tmp_path: Path) -> None:
    (sdist,) = SdistBuilder(str(PROJECT)).build(directory=str(tmp_path / "sdist"))
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.glob("raykeeper-*") if path.is_dir())
    for source in (PROJECT, unpacked):
        (wheel,) = WheelBuilder(str(source)).build(directory=str(tmp_path / "wheel"), versions=["standard"])
        with zipfile.ZipFile(wheel) as archive_:
            names = archive_.namelist()
        packed = {name.rpartition("/")[2] for name in names if name.startswith("raykeeper/api/crds/")}
        assert packed == {kind.file_name for kind in KINDS}
        charts = {name.split("/")[3] for name in names if name.startswith("raykeeper/cli/helm-chart/")}
        assert charts == {path.parent.name for path in (PROJECT / "helm-chart").glob("*/Chart.yaml")}
        assert not any("/crds/ray.io" in name for name in names if "helm-chart" in name), "twice in the wheel"

"""The container image, made without Docker: what is in it, for whom, and that a second build makes the same."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any, Final

import grimp
import pytest

import bed
from bed.binaries import binary
from bed.pinned import installed
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Rest
from bed.waiting import wait_until
from image.images import Opened, files_below, opened
from tools.image.__main__ import write_archives
from tools.image.archive import base_part, packages_part
from tools.image.debian import ARCHITECTURES, PACKAGES, pins
from tools.image.programs import ALL, COLLECTOR, ENVIRONMENT, USER, VARIANTS
from tools.image.programs import PACKAGES as PACKAGES_FOLDER
from tools.image.sbom import PLACE
from tools.image.tree import ImagePython, lay_programs
from tools.wheel import build_wheel

pytestmark = pytest.mark.bed  # it takes packages of Debian and PyPI, and a Go program

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text()
CYCLONEDX: Final = Path(bed.__path__[0]) / "requirements-cyclonedx.txt"
VALIDATE: Final = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()))
"""
ELF_MACHINES: Final = {"amd64": 62, "arm64": 183}
MEGABYTES: Final = {ALL.name: 180, COLLECTOR.name: 80}
"""At most so large, compressed."""
SECOND_BUILD_SECONDS: Final = 540
Images = dict[tuple[str, str], Path]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def images(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Archives by architecture and variant; what changes rarely comes from the cache."""
    folder = tmp_path_factory.mktemp("images")
    write_archives(folder, wheel, list(ARCHITECTURES), list(VARIANTS.values()))
    version = wheel.name.split("-")[1]
    names = {ALL.name: "raykeeper", COLLECTOR.name: "raykeeper-collector"}
    return {
        (architecture, variant): folder / f"{names[variant]}-{version}-{architecture}.tar"
        for architecture in ARCHITECTURES
        for variant in VARIANTS
    }


@pytest.fixture(scope="session")
def whole(images: Images) -> Opened:
    return opened(images["amd64", ALL.name])


@pytest.fixture(scope="session")
def small(images: Images) -> Opened:
    return opened(images["amd64", COLLECTOR.name])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_crane_finds_nothing_wrong(architecture: str, variant: str, images: Images, tmp_path: Path) -> None:
    """As a file, and once more in a registry, where it has gone through the layout that registries know."""
    archive, crane = images[architecture, variant], binary("crane")
    subprocess.run([crane, "validate", "--tarball", archive], check=True, capture_output=True)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "layout", filter="data")
    port = free_port()
    registry = Process("registry", [crane, "registry", "serve", f"--address=127.0.0.1:{port}"], tmp_path)
    registry.start()
    try:
        wait_until("a registry", lambda: Rest(f"http://127.0.0.1:{port}").answers("/v2/"))
        name = f"127.0.0.1:{port}/raykeeper:{architecture}"
        subprocess.run([crane, "push", "--insecure", tmp_path / "layout", name], check=True, capture_output=True)
        subprocess.run([crane, "validate", "--insecure", "--remote", name], check=True, capture_output=True)
        digest = subprocess.run([crane, "digest", "--insecure", name], check=True, capture_output=True, text=True)
        assert digest.stdout.strip() == opened(archive).manifest_digest
    finally:
        registry.kill()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_image_is_small_and_for_its_architecture_alone(architecture: str, variant: str, images: Images) -> None:
    image = opened(images[architecture, variant])
    assert image.compressed_bytes <= MEGABYTES[variant] * 1_000_000
    assert image.config["architecture"] == architecture
    programs = {name: file.machine for name, file in image.files.items() if file.is_elf}
    assert "usr/bin/python3.11" in programs
    assert set(programs.values()) == {ELF_MACHINES[architecture]}


def test_the_image_has_the_paths_of_kuberays_images(whole: Opened) -> None:
    for path in ("manager", "submitter", "usr/local/bin/collector", "usr/local/bin/historyserver"):
        assert whole.files[path].mode == 0o755
    assert whole.config["config"]["Entrypoint"] == ["/usr/local/bin/collector"]


def test_nobody_is_root_and_nothing_can_be_changed(whole: Opened) -> None:
    assert whole.config["config"]["User"] == USER
    assert b"nonroot:x:65532:65532" in whole.files["etc/passwd"].content
    assert [name for name, file in whole.files.items() if not file.link and file.mode & 0o6022] == []
    assert [name for name, mode in whole.folders.items() if mode & 0o022] == ["tmp"]


def test_there_is_no_shell_no_compiler_and_no_package_manager(whole: Opened) -> None:
    commands = {name.rpartition("/")[2] for name in whole.files if "bin" in name.split("/")[:-1]}
    ours = {*tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]}
    assert commands - ours == {"python3", "python3.11"}
    assert not any(re.search(r"/(pip|ensurepip|setuptools)/", name) for name in whole.files)


def test_the_small_image_has_one_program(small: Opened) -> None:
    assert [name for name in small.files if name.startswith("usr/local/bin/")] == ["usr/local/bin/collector"]
    assert not any("duckdb" in name or "/raykeeper/history/" in name for name in small.files)


@pytest.mark.parametrize("words", [["--help"], ["--role=none"]])
def test_the_small_image_has_all_that_its_program_imports(words: list[str], wheel: Path, tmp_path: Path) -> None:
    lay_programs(tmp_path, wheel, COLLECTOR)
    base, packages = base_part("amd64").folder, packages_part("amd64", COLLECTOR).folder
    places = ":".join(str(root / PACKAGES_FOLDER) for root in (packages, tmp_path))
    program = tmp_path / "usr/local/bin/collector"
    done = ImagePython(base).start(program, *words, PYTHONPATH=places)
    said = done.stdout + done.stderr
    assert "ModuleNotFoundError" not in said
    assert ("Usage: collector" in said) if words == ["--help"] else ("--role='none' cannot be used" in said), said


def test_the_pins_of_the_small_image_are_what_the_collector_imports() -> None:
    graph = grimp.build_graph("raykeeper", include_external_packages=True)
    reached = graph.find_upstream_modules("raykeeper.collector", as_package=True)
    external = {name for name in reached if not name.startswith("raykeeper")} - sys.stdlib_module_names
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert external <= {name.replace("-", "_") for name in groups["collector"]}
    folders = {name.split(".")[1] for name in reached if name.startswith("raykeeper.")}
    assert folders <= (COLLECTOR.kept or set())


def test_byte_code_is_there_and_says_nothing_about_the_machine_that_made_it(whole: Opened) -> None:
    modules = {name for name in whole.files if name.endswith(".py") and "/lib2to3/" not in name}
    compiled = {re.sub(r"__pycache__/(.+)\.cpython-311\.pyc$", r"\1.py", name) for name in whole.files}
    assert modules <= compiled
    byte_code = [file.content for name, file in whole.files.items() if name.endswith(".pyc")]
    assert all(content[4:8] == b"\x01\x00\x00\x00" for content in byte_code), "a hash that is not checked"
    assert not any(b"/root/" in content or b"/tmp/pytest" in content for content in byte_code)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_bill_of_materials_is_valid_and_complete(architecture: str, images: Images) -> None:
    image = opened(images[architecture, ALL.name])
    text = image.files[PLACE].content.decode()
    validator = {"PYTHONPATH": str(installed(CYCLONEDX, "CycloneDX"))}
    done = subprocess.run([sys.executable, "-c", VALIDATE], env=validator, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "None"), done.stdout + done.stderr
    parts = json.loads(text)["components"]
    debian = {part["name"] for part in parts if part["purl"].startswith("pkg:deb/")}
    assert debian == set(PACKAGES) == {pin.name for pin in pins(architecture)}
    python = {part["purl"] for part in parts if part["purl"].startswith("pkg:pypi/")}
    found = {match[1] for name in image.files if (match := re.search(r"/([^/]+)\.dist-info/METADATA$", name))}
    assert len(python) == len(found) - 1, "without ourselves"
    assert {f"var/lib/dpkg/status.d/{name}" for name in PACKAGES} <= image.files.keys()


def build_stage() -> list[str]:
    """The commands of the Dockerfile's first stage."""
    stage = DOCKERFILE.partition("FROM scratch")[0]
    return [line.removeprefix("RUN ") for line in stage.splitlines() if line.startswith("RUN python -m tools.")]


def given_to_docker(folder: Path) -> None:
    """A copy of the checkout with nothing but what the Dockerfile copies and .dockerignore lets through."""
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = " ".join(re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)).split()
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    for name in listed:
        if not all(any(name == path or name.startswith(f"{path}/") for path in paths) for paths in (allowed, copied)):
            continue
        if (ROOT / name).exists() and not fnmatch.fnmatch(name, "*/__pycache__/*"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


@pytest.mark.soak
@pytest.mark.timeout(SECOND_BUILD_SECONDS)
def test_what_docker_would_build_from_another_clone_is_the_same_file_system(whole: Opened, tmp_path: Path) -> None:
    clone, root, wheels = tmp_path / "clone", tmp_path / "image", tmp_path / "wheel"
    given_to_docker(clone)
    commands = build_stage()
    assert len(commands) == 2
    places = {"/image": str(root), "/wheel": str(wheels), "${VARIANT}": "all", "${TARGETARCH}": "amd64"}
    for command in commands:
        for told, here in places.items():
            command = command.replace(f" {told}", f" {here}")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(command, shell=True, cwd=clone, check=True, env=os.environ | {"PATH": path})
    built = files_below(root)
    assert built.keys() == whole.files.keys()
    assert [name for name, file in built.items() if file != whole.files[name]] == []


@pytest.mark.soak
@pytest.mark.timeout(SECOND_BUILD_SECONDS)
def test_a_second_build_has_the_same_digest(
    wheel: Path, images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYKEEPER_BED_CACHE", str(tmp_path / "cache"))
    write_archives(tmp_path, wheel, ["amd64"], [COLLECTOR])
    (again,) = tmp_path.glob("*.tar")
    first = images["amd64", COLLECTOR.name]
    assert again.read_bytes() == first.read_bytes()


def test_the_dockerfile_says_the_same_as_the_archive() -> None:
    last_stage = DOCKERFILE.partition("FROM scratch")[2]
    said: dict[str, Any] = dict(re.findall(r"([A-Z_]+)=(\S+)", last_stage.partition("ENV ")[2].partition("USER")[0]))
    assert said == dict(ENVIRONMENT)
    assert f"USER {USER}" in last_stage
    assert 'ENTRYPOINT ["/usr/local/bin/collector"]' in last_stage

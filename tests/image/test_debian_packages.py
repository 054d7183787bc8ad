"""Packages of Debian are taken by their hashes alone, and unpacked into their root alone."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.image import debian
from tools.image.debian import PackageMissing, Pin, control_of, fetch, make_root, package_urls, unpack


def tar_of(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755 if "/bin/" in name else 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return lzma.compress(buffer.getvalue())


def a_package(folder: Path, files: Mapping[str, str]) -> Path:
    """A `.deb` as dpkg writes it."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar_of({"./control": "Package: a\nVersion: 1\n"}),
        "data.tar.xz": tar_of(files),
    }
    content = b"!<arch>\n"
    for name, data in members.items():
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        content += header + data + (b"\n" if len(data) % 2 else b"")
    package = folder / "a_1_amd64.deb"
    package.write_bytes(content)
    return package


def a_pin(content: bytes) -> Pin:
    return Pin("a", "amd64", "1", hashlib.sha256(content).hexdigest(), "debian/pool/main/a/a_1_amd64.deb")


def test_a_package_is_unpacked_into_the_merged_folders(tmp_path: Path) -> None:
    package = a_package(tmp_path, {"./lib/x.so": "library", "./usr/bin/a": "program"})
    root = tmp_path / "root"
    make_root(root)
    unpack(package, root)
    assert (root / "usr/lib/x.so").read_text() == "library"
    assert (root / "lib/x.so").samefile(root / "usr/lib/x.so")
    assert (root / "usr/bin/a").stat().st_mode & 0o777 == 0o755
    assert control_of(package).startswith("Package: a\n")


def test_licences_stay_and_manuals_go(tmp_path: Path) -> None:
    wanted, unwanted = "usr/share/doc/a/copyright", ("usr/share/doc/a/changelog.gz", "usr/share/man/man1/a.1.gz")
    unpack(a_package(tmp_path, {f"./{name}": "text" for name in (wanted, *unwanted)}), tmp_path / "root")
    assert (tmp_path / "root" / wanted).exists()
    assert not any((tmp_path / "root" / name).exists() for name in unwanted)


@pytest.mark.parametrize("name", ["/etc/passwd", "../outside", "usr/../../outside"])
def test_a_file_outside_of_the_root_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(PackageMissing, match="outside of its root"):
        unpack(a_package(tmp_path, {name: "evil"}), tmp_path / "root")


def test_a_package_with_another_hash_is_looked_for_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "changed").write_bytes(b"changed on the way")
    (tmp_path / "right").write_bytes(b"as pinned")
    mirrors = [(tmp_path / name).as_uri() for name in ("missing", "changed", "right")]
    found = fetch(a_pin(b"as pinned"), tmp_path / "downloads", mirrors)
    assert found.read_bytes() == b"as pinned"
    (tmp_path / "right").unlink()
    assert fetch(a_pin(b"as pinned"), tmp_path / "downloads", mirrors) == found, "it is there already"


def test_a_file_that_was_damaged_on_disk_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "right").write_bytes(b"as pinned")
    mirrors = [(tmp_path / "right").as_uri()]
    fetch(a_pin(b"as pinned"), tmp_path, mirrors).write_bytes(b"damaged")
    assert fetch(a_pin(b"as pinned"), tmp_path, mirrors).read_bytes() == b"as pinned"


def test_a_package_that_nobody_has_is_named_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(PackageMissing, match=r"no mirror has a 1 for amd64 with the pinned hash; .* run `make pins`"):
        fetch(a_pin(b"as pinned"), tmp_path, [(tmp_path / "missing").as_uri()])


def test_what_a_mirror_has_dropped_is_in_the_archive_of_that_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "pinned_day", lambda: "20261117")
    mirror, archive = package_urls(a_pin(b""))
    assert mirror.endswith("/debian/pool/main/a/a_1_amd64.deb")
    assert archive.endswith("/archive/debian/20261117T235959Z/pool/main/a/a_1_amd64.deb")


def test_every_package_is_pinned_for_every_architecture() -> None:
    for architecture in debian.ARCHITECTURES:
        found = debian.pins(architecture)
        assert sorted(pin.name for pin in found) == sorted(debian.PACKAGES)
        assert all(len(pin.sha256) == 64 for pin in found)

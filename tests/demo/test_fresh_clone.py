"""The README's first command, on a machine that has Python, git and make."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
INSTALL_SECONDS = 1800  # some 200 MB from the registries

pytestmark = pytest.mark.soak


def test_make_demo_works_in_a_fresh_clone(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "XDG_"))}
    done = subprocess.run(
        ["make", "demo", "DEMO_ARGS=--exit"],
        cwd=clone,
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "installing Ray" in done.stdout
    assert (home / ".local" / "share" / "raykeeper" / "demo" / "v1").is_dir()

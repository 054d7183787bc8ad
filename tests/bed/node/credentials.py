"""Kubeconfigs of the node's daemons, under names that stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bed.control_plane import ControlPlane
from bed.pki import Authority, kubeconfig_text


def write_kubeconfig(plane: ControlPlane, file: Path, user: str, groups: Sequence[str] = ()) -> None:
    """Let whoever reads `file` act as `user` in `groups` on `plane`."""
    authority = Authority.load(plane.keys.authority)
    file.touch(mode=0o600)
    file.write_text(kubeconfig_text(plane.server, authority.pair.certificate, authority.issue(user, groups)))

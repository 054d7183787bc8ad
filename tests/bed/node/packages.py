"""The Debian packages a real node needs, installed when missing and without leaving a service behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bed.errors import BedError
from bed.node.commands import CommandFailed, find_program, run
from bed.progress import step

PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "debootstrap": "debootstrap",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "sleep": "coreutils",
    "tar": "tar",
}
"""Program -> the Debian package that has it."""

POLICY = Path("/usr/sbin/policy-rc.d")
ALWAYS_DENIED = "#!/bin/sh\nexit 101\n"  # 101 is "action forbidden" in invoke-rc.d's interface
INSTALL_TIMEOUT_SECONDS = 600
LOCK_WAIT_SECONDS = 120  # another apt may be running


class PackagesMissing(BedError):
    """The machine lacks programs that cannot be installed here."""


def missing_programs() -> list[str]:
    """The programs of the table that this machine does not have, in the table's order."""
    return [program for program in PROGRAMS if find_program(program) is None]


def packages_of(programs: Sequence[str]) -> list[str]:
    """The Debian packages that have `programs`, each once."""
    return list(dict.fromkeys(PROGRAMS[program] for program in programs))


def install_missing_packages() -> list[str]:
    """Install what is missing and return the packages' names; starts no service, changes nothing that is there."""
    programs = missing_programs()
    if not programs:
        return []
    if find_program("apt-get") is None:
        raise PackagesMissing(f"this machine has no apt-get; install these programs yourself: {', '.join(programs)}")
    packages = packages_of(programs)
    with step(f"installing {', '.join(packages)}"), _services_denied():
        _apt_install(packages)
    if "containerd" in packages:
        _disable_service("containerd")
    if still_missing := missing_programs():
        raise PackagesMissing(f"installed {', '.join(packages)}, but still without {', '.join(still_missing)}")
    return packages


def _apt_install(packages: Sequence[str]) -> None:
    """Install from the package lists at hand; fetch newer lists only when that fails."""
    try:
        _apt_get("install", "--no-install-recommends", "--yes", *packages)
    except CommandFailed:
        _apt_get("update")
        _apt_get("install", "--no-install-recommends", "--yes", *packages)


def _apt_get(*arguments: str) -> None:
    command = ["apt-get", "-q", "-o", f"DPkg::Lock::Timeout={LOCK_WAIT_SECONDS}", *arguments]
    run(command, env={"DEBIAN_FRONTEND": "noninteractive"}, timeout_seconds=INSTALL_TIMEOUT_SECONDS)


@contextmanager
def _services_denied() -> Iterator[None]:
    """Debian's packages start their services unless this policy forbids it; a policy of the machine's own is kept."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text(ALWAYS_DENIED)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def _disable_service(name: str) -> None:
    """A package we installed must not start a daemon at the next boot either."""
    if Path("/run/systemd/system").is_dir():
        run(["systemctl", "disable", "--now", name])

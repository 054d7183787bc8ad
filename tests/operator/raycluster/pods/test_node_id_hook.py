"""The hook that writes a raylet's node id, run by real shells: before a user's hook, and with no other program."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from bed.waiting import wait_until
from raykeeper.api.meta import JSON
from raykeeper.collector.node_ids import parse_hook_file
from raykeeper.operator.raycluster.pods.node_id_hook import with_node_id_hook

NODE_ID: Final = "1b5f0a9c" * 7
SHELLS: Final = {"sh": ["/bin/sh"], "dash": ["dash"], "bash": ["bash"], "bash-as-sh": ["bash", "--posix"]}
# NULs stand between the arguments; the agent's own command, which is one of them, has another spelling of the id.
RAYLET: Final = ("/opt/ray/raylet", "--object_store=/tmp/s", f"--node_id={NODE_ID}", "--agent=python --node-id=ffff")
ECHO: Final = "import json, sys; json.dump(sys.argv[1:], open(sys.argv[1], 'w'))"
"""Writes its arguments into the file that the first of them names."""


@dataclass
class Machine:
    """A shell, and folders in the place of /proc and Ray's."""

    shell: list[str]
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "ray" / "init.log"

    @property
    def node_id(self) -> Path:
        return self.folder / "ray" / "alibabacloud_raylet_node_id"

    def has_process(self, pid: int, name: str, *arguments: str) -> None:
        process = self.folder / "proc" / str(pid)
        process.mkdir()
        (process / "cmdline").write_bytes("\0".join(arguments).encode() + b"\0")
        (process / "comm").write_text(f"{name}\n")

    def run(self, post_start: JSON | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """The hook as the kubelet runs it, until it ends."""
        return subprocess.run(
            self.command(post_start),
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def command(self, post_start: JSON | None = None) -> list[str]:
        lifecycle = {"postStart": post_start} if post_start else None
        path, *arguments = with_node_id_hook(lifecycle)["postStart"]["exec"]["command"]
        assert path == "/bin/sh"
        moved = [one.replace("/proc", f"{self.folder}/proc") for one in arguments[:2]]
        moved = [one.replace("/tmp/ray", f"{self.folder}/ray") for one in moved]
        return [*self.shell, *moved, *arguments[2:]]

    def waiters(self) -> list[int]:
        """Processes of ours that still wait, by what they have open as their working folder."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").resolve() == self.folder.resolve():
                    found.append(int(process.name))
            except OSError:
                continue
        return found


@pytest.fixture(params=SHELLS)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    for name in ("proc", "ray"):
        (tmp_path / name).mkdir()
    made = Machine(SHELLS[request.param], tmp_path)
    yield made
    for pid in made.waiters():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_the_node_id_is_written_in_the_words_of_the_documentation(machine: Machine) -> None:
    machine.has_process(7, "python", "python", "raylet", "--node_id=cafe")
    machine.has_process(8, "raylet", *RAYLET)
    assert machine.run().returncode == 0
    wait_until("the id is written", machine.node_id.exists)
    wait_until("nothing is left", lambda: not machine.waiters())
    assert machine.node_id.read_text() == f"{NODE_ID}\n"
    assert machine.log.read_text().endswith(f' raylet started: "{NODE_ID}" => {NODE_ID}\n')
    assert parse_hook_file(machine.log.read_text()) == parse_hook_file(machine.node_id.read_text()) == NODE_ID


def test_the_hook_ends_at_once_and_the_id_is_written_when_the_raylet_is_there(machine: Machine) -> None:
    assert machine.run().returncode == 0
    wait_until("it looked in vain", lambda: machine.log.exists() and "raylet not start\n" in machine.log.read_text())
    assert not machine.node_id.exists()
    machine.has_process(8, "raylet", *RAYLET)
    wait_until("the id is written", machine.node_id.exists)


def test_a_process_that_vanishes_or_names_no_node_is_no_raylet(machine: Machine) -> None:
    (machine.folder / "proc" / "5").mkdir()
    machine.has_process(6, "raylet", "raylet", "--node_id=")
    machine.has_process(7, "raylet", "raylet")
    machine.has_process(8, "raylet", *RAYLET)
    machine.run()
    wait_until("the id is written", machine.node_id.exists)
    assert machine.node_id.read_text() == f"{NODE_ID}\n"


@pytest.mark.parametrize("tools", [(), ("sleep",)])
def test_no_other_program_is_needed(machine: Machine, tools: tuple[str, ...]) -> None:
    """Neither ps nor grep; without `date` a line has no time, and without `sleep` it looks once."""
    (machine.folder / "bin").mkdir()
    for tool in tools:
        (machine.folder / "bin" / tool).symlink_to(str(shutil.which(tool)))
    machine.shell = [str(shutil.which(machine.shell[0])), *machine.shell[1:]]
    machine.has_process(8, "raylet", *RAYLET)
    assert machine.run(PATH=f"{machine.folder}/bin").returncode == 0
    wait_until("the id is written", machine.node_id.exists)
    wait_until("nothing is left", lambda: not machine.waiters())


@pytest.mark.parametrize("machine", ["sh"], indirect=True)
def test_it_gives_up_after_an_hour(machine: Machine) -> None:
    (machine.folder / "bin").mkdir()
    naps = machine.folder / "naps"
    nap = machine.folder / "bin" / "sleep"
    nap.write_text(f'#!{shutil.which("sh")}\necho "$1" >> {naps}\n')
    nap.chmod(0o755)
    machine.run(PATH=f"{machine.folder}/bin:{os.environ['PATH']}")
    wait_until("it gave up", lambda: machine.log.exists() and "within an hour" in machine.log.read_text())
    wait_until("nothing is left", lambda: not machine.waiters())
    assert 3550 <= sum(map(int, naps.read_text().split())) <= 3650
    assert not machine.node_id.exists()


ODD_ARGUMENTS: Final = (
    "",
    " ",
    "two words",
    "$HOME `id` $(id)",
    'it\'s "quoted"',
    "back\\slash\\n",
    "new\nline",
    "--flag=1",
    "-n",
    "*",
    "; exit 3",
    "ünïcödé",
    "%s",
    "$$",
    "#",
    "!",
)


def test_a_users_command_gets_its_arguments_as_they_are(machine: Machine) -> None:
    told = machine.folder / "told"
    command = [sys.executable, "-c", ECHO, str(told), *ODD_ARGUMENTS]
    done = machine.run({"exec": {"command": command}})
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(told.read_text()) == [str(told), *ODD_ARGUMENTS]


def test_a_users_script_for_a_shell_runs_as_it_did(machine: Machine) -> None:
    script = 'x="a b"; echo "$x" "$0" "$#"; for i in 1 2; do echo $i; done | cat; echo oh >&2'
    command = ["/bin/sh", "-c", script]
    alone = subprocess.run(command, capture_output=True, text=True, check=False)
    done = machine.run({"exec": {"command": command}})
    assert (done.stdout, done.stderr) == (alone.stdout, alone.stderr)


@pytest.mark.parametrize("code", [0, 1, 42])
def test_a_users_hook_fails_as_it_did(machine: Machine, code: int) -> None:
    assert machine.run({"exec": {"command": ["/bin/sh", "-c", f"exit {code}"]}}).returncode == code


def test_a_users_command_that_is_not_there_fails(machine: Machine) -> None:
    assert machine.run({"exec": {"command": ["no-such-program", "x"]}}).returncode == 127


def test_a_users_hook_keeps_its_environment_and_its_process(machine: Machine) -> None:
    command = [sys.executable, "-c", "import os; print(os.getpid(), os.environ['MINE'])"]
    process = subprocess.Popen(
        machine.command({"exec": {"command": command}}),
        cwd=machine.folder,
        env={"PATH": os.environ["PATH"], "MINE": "kept"},
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = process.communicate(timeout=60)
    assert said.split() == [str(process.pid), "kept"]


def test_a_users_hook_that_waits_for_its_children_does_not_wait_for_ours(machine: Machine) -> None:
    program = "import os\ntry: os.wait()\nexcept ChildProcessError: print('none')"
    done = machine.run({"exec": {"command": [sys.executable, "-c", program]}})
    assert done.stdout == "none\n"
    assert machine.waiters()


def test_a_users_pause_is_kept(machine: Machine) -> None:
    began = time.monotonic()
    assert machine.run({"sleep": {"seconds": 1}}).returncode == 0
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize("users", [{"httpGet": {"path": "/", "port": 80}}, {"tcpSocket": {"port": 80}}])
def test_what_a_shell_cannot_do_for_the_kubelet_is_left_to_it(users: Any) -> None:
    assert with_node_id_hook({"postStart": users, "preStop": {"sleep": {"seconds": 3}}}) == {
        "postStart": users,
        "preStop": {"sleep": {"seconds": 3}},
    }


def test_other_parts_of_a_lifecycle_stay() -> None:
    made = with_node_id_hook({"preStop": {"sleep": {"seconds": 3}}, "stopSignal": "SIGUSR1"})
    assert {name: made[name] for name in made if name != "postStart"} == {
        "preStop": {"sleep": {"seconds": 3}},
        "stopSignal": "SIGUSR1",
    }

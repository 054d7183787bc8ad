"""One demo from its first process to its last: start, run the job, end Ray, ask the history."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from raykeeper.demo.children import ENDING_SIGNALS, Children
from raykeeper.demo.commands import CLUSTER, NAMESPACE, Places, base_environment
from raykeeper.demo.programs import Programs, start_programs
from raykeeper.demo.rayinstall import RayInstall, find_ray
from raykeeper.demo.rayjob import JobEnd, entrypoint
from raykeeper.demo.remembered import RememberedSession
from raykeeper.demo.screen import Screen
from raykeeper.demo.settings import DemoSettings
from raykeeper.demo.telling import tell_outcome, tell_report, tell_ways
from raykeeper.errors import Misconfigured
from raykeeper.layout.keys import SessionId

WORKLOAD = Path(__file__).parent / "workload" / "failing_job.py"
INTERRUPTED = 130  # as a shell says of Ctrl-C
_LOOK_SECONDS = 0.5


def run(settings: DemoSettings, screen: Screen) -> int:
    """Be the demo; the exit code. Raises RaykeeperError for what a person has to know.

    Guarantees: however it ends, no process and no file of it is left but the store (unless it is killed itself).
    """
    store = _made_store(settings.folder)
    try:
        with _ended_by_signals():
            ray = find_ray(settings.ray_python, screen)
            with _run_folder() as folder, Children(folder, base_environment(os.environ)) as children:
                return _show(settings, Places(store, folder), ray, children, screen)
    except KeyboardInterrupt:
        screen.say(f"interrupted; everything is ended, the history so far is in {store}")
        return INTERRUPTED


def _show(settings: DemoSettings, places: Places, ray: RayInstall, children: Children, screen: Screen) -> int:
    with screen.step(f"starting the history server, Ray {ray.version} and a collector"):
        programs = start_programs(children, places, ray, os.environ, is_small=not settings.command)
        programs.wait_until_started()
    remembered = RememberedSession(programs.history_server, SessionId(NAMESPACE, CLUSTER, programs.session))
    end = _run_job(settings, programs, ray, screen)
    with screen.step("ending Ray; the collector sends the rest, and the history server opens the dead session"):
        programs.end_ray(remembered, end.submission_id)
    report = remembered.report()
    code = tell_outcome(settings, report, end, screen)
    tell_report(remembered, end, screen)
    tell_ways(settings, remembered, ray, end, screen)
    if not settings.exits:
        _serve_until_interrupted(children, screen)
    return code


def _run_job(settings: DemoSettings, programs: Programs, ray: RayInstall, screen: Screen) -> JobEnd:
    command = settings.command or (str(ray.python), str(WORKLOAD))
    submission_id = f"demo-{time.strftime('%H%M%S')}"
    with screen.step("running " + (" ".join(command) if settings.command else "a job in which some tasks fail")):
        return programs.run_job(entrypoint(command, Path.cwd()), submission_id, screen)


def _serve_until_interrupted(children: Children, screen: Screen) -> None:
    screen.say("Ctrl-C ends the history server")
    try:
        while True:
            children.check()
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        screen.say()


def _made_store(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Misconfigured("--folder", str(folder), f"it must be a folder to write to ({exc.strerror})") from exc
    return folder


@contextmanager
def _run_folder() -> Iterator[Path]:
    """A folder with a short path, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="rk-demo-", dir="/tmp"))  # TMPDIR may be too long for sockets
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a closed terminal or `kill` end us as Ctrl-C does, also where a shell has turned that off (`demo &`)."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

"""The last page of a demo: what the history says, and how to look at it oneself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from raykeeper.demo.expected import differences
from raykeeper.demo.rayinstall import RayInstall
from raykeeper.demo.rayjob import JobEnd
from raykeeper.demo.remembered import RememberedSession
from raykeeper.demo.report import Report
from raykeeper.demo.screen import Screen
from raykeeper.demo.settings import DemoSettings

AS_EXPECTED, OTHERWISE = 0, 1
"""Exit codes of the demo's own job; with a script of the user's it is that of the script."""
_REPORT_SECONDS = 120.0
_FAILURES = 1  # the exit code of a report that has something to tell
DEFAULT_HISTORY = "http://127.0.0.1:8080"  # where `raykeeper history` listens when nobody says otherwise


def tell_outcome(settings: DemoSettings, report: Report, end: JobEnd, screen: Screen) -> int:
    """Show what the history knows; the exit code that follows from it."""
    screen.say()
    screen.say("Ray is gone. What the history says of it:", "bold")
    for line in report.lines():
        screen.say(f"  {line}")
    screen.say()
    if settings.command:
        screen.say(f"the script ended with code {end.shell_code} ({end.status})")
        return end.shell_code
    found = list(differences(report, end))
    for difference in found:
        screen.say(f"not as expected: {difference}", "red")
    return OTHERWISE if found else AS_EXPECTED


def tell_report(remembered: RememberedSession, end: JobEnd, screen: Screen) -> None:
    """What `raykeeper report` says of the job: the command itself says it, as for everybody."""
    subject = f"{remembered.id}/{end.submission_id}"
    command = [sys.executable, "-m", "raykeeper.cli.main", "report", subject, "--server", remembered.history.url]
    try:
        said = subprocess.run(  # noqa: S603 - ourselves, with names of the demo's own
            command, capture_output=True, text=True, timeout=_REPORT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        screen.say("its report took too long", "red")
        return
    if said.returncode > _FAILURES:
        screen.say(said.stderr.strip(), "red")
        return
    screen.say("And its report, as `raykeeper report` has it:", "bold")
    screen.quote(said.stdout.rstrip().splitlines())
    screen.say()


def tell_ways(
    settings: DemoSettings, remembered: RememberedSession, ray: RayInstall, end: JobEnd, screen: Screen
) -> None:
    """How to look at the dead session: now, or later where the server ends with us."""
    address = remembered.url.rstrip("/")
    if settings.exits:
        screen.say(f"its history stays in {settings.folder}; to look at it:")
        screen.say(f"  {_raykeeper()} history --store={settings.folder.as_uri()} --dashboard-dir={ray.dashboard}")
        screen.say(f"  then its dashboard is at {DEFAULT_HISTORY}{remembered.path}/")
        screen.say(f"  and {_report_words(end):<20} {DEFAULT_HISTORY}{remembered.path}/report")
        _tell_report(settings, remembered, screen)
        return
    screen.say("its dashboard:  " + remembered.url, "bold")
    screen.say(f"{_report_words(end) + ':':<15} {address}/report", "bold")
    screen.say("all sessions:   " + remembered.history.url)
    screen.say("on the command line:")
    screen.say(f"  {ray.command} list tasks --address {address} --filter state=FAILED")
    screen.say(f"  {ray.command} summary tasks --address {address}")
    screen.say(f"  {ray.command} job logs {end.submission_id} --address {address}")
    _tell_report(settings, remembered, screen)
    screen.say(f"its history stays in {settings.folder}")


def _report_words(end: JobEnd) -> str:
    """What the report is about: a script that went well has not failed."""
    return "its report" if end.status == "SUCCEEDED" else "why it failed"


def _tell_report(settings: DemoSettings, remembered: RememberedSession, screen: Screen) -> None:
    """Needs no server, so it works now and later."""
    screen.say(f"  {_raykeeper()} report {remembered.id} --store={settings.folder.as_uri()}")


def _raykeeper() -> str:
    """The command as it can be copied, also where its environment is not active."""
    beside = Path(sys.executable).with_name("raykeeper")
    return str(beside) if beside.is_file() else "raykeeper"

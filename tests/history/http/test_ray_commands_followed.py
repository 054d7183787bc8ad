"""Ray's own commands, pointed at a session whose cluster is gone."""

from __future__ import annotations

import asyncio

import pytest

from bed.rayenv import ray_python
from support.goldenserver import golden_server
from support.goldensession import Moments
from support.raycapture import HEAD, SESSION, WORKER
from support.serving_history import serving

pytestmark = pytest.mark.bed

PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}"
JOB_LOG = ("Running entrypoint for job golden-fail: python job_fail.py", "job_fail: raising")
COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ray list nodes --address {}", (HEAD.node_id, WORKER.node_id)),
    ("ray get tasks 9a44e66cef1defbcffffffffffffffffffffffff02000000 --address {}", ("fail_app", "FAILED")),
    ("ray summary tasks --address {}", ("fail_app", "FINISHED: ")),
    ("ray job list --address {}", ("golden-fail", "golden-main")),
    ("ray job status golden-fail --address {}", ("Job 'golden-fail' failed",)),
    ("ray job logs golden-fail --address {}", JOB_LOG),
    ("ray job logs golden-fail --follow --address {}", JOB_LOG),
    ("serve status --address {}", ("hello_app", "RUNNING")),
)


@pytest.mark.parametrize("session", [SESSION.session, "latest"])
async def test_rays_commands_work_on_a_dead_session(ingested_moments: Moments, session: str) -> None:
    commands = COMMANDS if session != "latest" else COMMANDS[:1]
    async with golden_server(ingested_moments["final"]) as app, serving(app) as url:
        address, two_at_once = f"{url}{PREFIX}/{session}", asyncio.Semaphore(2)
        said = await asyncio.gather(*(output_of(command.format(address), two_at_once) for command, _ in commands))
    for (command, expected), text in zip(commands, said, strict=True):
        assert [word for word in expected if word not in text] == [], f"{command}: {text}"


async def output_of(command: str, turns: asyncio.Semaphore) -> str:
    """What one of Ray's commands printed, on either stream."""
    async with turns:
        return await _run(*command.split())


async def _run(program: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(ray_python().with_name(program)),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), 120)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode()

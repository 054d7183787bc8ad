"""Ray's job API for many heads at once, told apart by the host they are asked as: `head-7.…`. Jobs end by themselves.

`python -m bench.programs.job_heads PORT`; `GET /ends` says when each job ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field

from aiohttp import web

JOB_SECONDS = 30.0
ANSWER_SECONDS = 0.05
HANGING = 20
"""Every so-manieth head takes connections and does not answer."""


@dataclass
class JobHeads:
    """Jobs by the number of their head, and when each was submitted."""

    started: dict[int, float] = field(default_factory=dict)
    submissions: int = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/ends":
            ends = {number: start + JOB_SECONDS for number, start in self.started.items()}
            return web.json_response({"ends": ends, "submissions": self.submissions})
        number = int(request.headers["Host"].partition(".")[0].removeprefix("head-"))
        await asyncio.sleep(3600 if number % HANGING == 0 else ANSWER_SECONDS)
        if request.method == "POST":
            body = json.loads(await request.read())
            self.submissions += 1
            self.started.setdefault(number, time.time())
            return web.json_response({"job_id": body["submission_id"], "submission_id": body["submission_id"]})
        if number not in self.started:
            return web.Response(status=404, text="no such job")
        return web.json_response(self._told(number, request.path.rsplit("/", 1)[1]))

    def _told(self, number: int, job_id: str) -> dict[str, object]:
        start = self.started[number]
        has_ended = time.time() >= start + JOB_SECONDS
        told = {"submission_id": job_id, "type": "SUBMISSION", "message": "", "start_time": int(start * 1000)}
        if not has_ended:
            return {**told, "status": "RUNNING"}
        return {**told, "status": "SUCCEEDED", "end_time": int((start + JOB_SECONDS) * 1000)}


async def serve(port: int) -> None:
    runner = web.ServerRunner(web.Server(JobHeads().handle), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))

"""A Serve application whose answer tells its config and the cluster that it runs on."""

import asyncio
import os
from typing import Any

from ray import serve  # type: ignore[import-not-found, unused-ignore]  # the image has it, our environment does not


class Hello:
    """Says one word."""

    def __init__(self) -> None:
        self.word = ""

    def reconfigure(self, config: dict[str, str]) -> None:
        """Called by Serve at the start, and when the config changes."""
        self.word = config["word"]

    async def __call__(self, request: Any) -> str:
        """At once, or as late as it is asked to."""
        await asyncio.sleep(float(request.query_params.get("seconds", 0)))
        return f"{self.word} from {os.environ['RELEASE']}"


app = serve.deployment(Hello).bind()

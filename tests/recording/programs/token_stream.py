"""An async engine streams tokens to its callers; one prompt is longer than its context."""

import asyncio

import ray


class ContextOverflow(ValueError):
    pass


class BlockManager:
    def __init__(self, blocks):
        self.blocks = blocks

    def allocate(self, tokens):
        if len(tokens) > self.blocks * 4:
            raise ContextOverflow(f"prompt has {len(tokens)} tokens, the context holds {self.blocks * 4}")


@ray.remote
class AsyncEngine:
    def __init__(self):
        self.manager = BlockManager(blocks=4)

    async def stream(self, tokens):
        self.manager.allocate(tokens)
        for token in tokens:
            await asyncio.sleep(0)
            yield token + 1


ray.init()
engine = AsyncEngine.options(name="engine-0").remote()
for prompt in (range(5), range(12), range(40)):
    print([ray.get(token) for token in engine.stream.options(num_returns="streaming").remote(list(prompt))])

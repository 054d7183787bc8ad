"""An async actor runs its requests in a task group, and one of them fails."""

import asyncio

import ray


class RateLimited(Exception):
    pass


async def fetch(page):
    await asyncio.sleep(0.01 * page)
    if page == 3:
        raise RateLimited(f"page {page}: 429, retry after 60 s")
    return page


@ray.remote
class Crawler:
    async def crawl(self, pages):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch(page)) for page in pages]
        return [task.result() for task in tasks]


ray.init()
crawler = Crawler.options(name="crawler").remote()
print(ray.get(crawler.crawl.remote([1, 2, 3, 4])))

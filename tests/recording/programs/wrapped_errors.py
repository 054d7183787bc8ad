"""The user's own exception is raised from another; its message has several lines."""

import ray


class StageFailed(Exception):
    """What the pipeline's authors look for."""


def read_config(name):
    settings = {"extract": {"url": "https://example.org"}, "load": {}}
    return settings[name]["url"]


@ray.remote
def stage(name):
    try:
        return read_config(name)
    except KeyError as error:
        raise StageFailed(f"stage {name} has no url\nknown stages: extract, load\nhint: see pipeline.yaml") from error


ray.init()
print(ray.get([stage.remote("extract"), stage.remote("load")]))

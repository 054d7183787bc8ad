"""An exception without any words."""

import ray


class Exporter:
    def write(self, rows):
        raise NotImplementedError


@ray.remote
def export(rows):
    return Exporter().write(rows)


ray.init()
ray.get(export.remote([1, 2, 3]))

"""A package of the user's own calls pandas with a column that is not there."""

import ray
from pipeline.clean import normalise


@ray.remote
def clean(part):
    rows = [{"customer": n, "amount": n * 2.5} for n in range(part)]
    return normalise(rows)


ray.init()
print(ray.get([clean.remote(part) for part in (3, 5)]))

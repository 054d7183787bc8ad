"""Ray Data: rows are sorted by a column that they do not have."""

import ray

ray.init()
visits = ray.data.from_items([{"user": number, "at": 100 - number} for number in range(10)])
print(visits.sort("visited_at").take(3))

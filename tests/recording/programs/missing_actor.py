"""The driver looks for an actor that nobody made."""

import ray

ray.init()
store = ray.get_actor("feature-store", namespace="shared")
print(ray.get(store.lookup.remote("u1")))

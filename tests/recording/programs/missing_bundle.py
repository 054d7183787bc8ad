"""A placement group asks for more than there is, and the driver waits for it with a limit."""

import ray
from ray.util.placement_group import placement_group

ray.init()
group = placement_group([{"CPU": 2}, {"CPU": 4}], strategy="PACK", name="trainers")
if not group.wait(15):
    raise TimeoutError("placement group trainers is not ready after 15 s")

"""A task raises an exception whose constructor wants two arguments, so that nobody can unpickle it."""

import ray


class QuotaExceeded(Exception):
    def __init__(self, bucket, used):
        super().__init__(f"bucket {bucket} is full: {used} GB used")
        self.bucket = bucket


@ray.remote(max_retries=0)
def upload(part):
    if part == 3:
        raise QuotaExceeded("models-eu", 512)
    return part


ray.init()
print(ray.get([upload.remote(part) for part in range(6)]))

"""A consumer actor is restarted and gets the same poisoned message again, until no restart is left."""

import os
import sys

import ray


@ray.remote(max_restarts=2, max_task_retries=2)
class Consumer:
    def handle(self, message):
        if message == "msg-13":
            sys.stderr.write("protobuf: invalid wire type 7 in msg-13\n")
            sys.stderr.flush()
            os.abort()
        return len(message)


ray.init()
consumer = Consumer.options(name="orders-consumer").remote()
for number in range(20):
    ray.get(consumer.handle.remote(f"msg-{number}"))

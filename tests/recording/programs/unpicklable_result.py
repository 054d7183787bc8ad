"""A task returns an open connection, which cannot be sent to anybody."""

import socket

import ray


@ray.remote(max_retries=0)
def connect(host):
    return {"host": host, "connection": socket.socket()}


ray.init()
print(ray.get(connect.remote("db-1")))

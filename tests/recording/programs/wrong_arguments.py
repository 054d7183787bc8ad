"""The entrypoint lacks an argument that the script requires."""

import argparse

import ray

parser = argparse.ArgumentParser(prog="nightly")
parser.add_argument("--date", required=True)
arguments = parser.parse_args()
ray.init()
print(arguments.date)

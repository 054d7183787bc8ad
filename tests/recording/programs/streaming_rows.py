"""A generator task yields rows and breaks in the middle of its file."""

import csv
import io

import ray

FILE = "id,amount\n1,10\n2,20\n3\n4,40\n"


@ray.remote(max_retries=0)
def rows():
    for row in csv.DictReader(io.StringIO(FILE)):
        yield {"id": int(row["id"]), "amount": int(row["amount"])}


ray.init()
total = 0
for ref in rows.remote():
    total += ray.get(ref)["amount"]
print(total)

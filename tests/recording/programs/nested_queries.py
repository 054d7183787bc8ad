"""Monthly reports query a database. One table is missing, two callers inherit that; other queries are tried again."""

import os
import tempfile

import ray

ATTEMPTS = tempfile.mkdtemp(prefix="rk-attempts-")


@ray.remote(max_retries=3, retry_exceptions=[ConnectionError, TimeoutError], num_cpus=0.2)
def query(table, folder):
    if table == "sales_2026_03":
        raise ConnectionError(f'FATAL: relation "{table}" does not exist')
    mark = os.path.join(folder, table)
    if not os.path.exists(mark):
        open(mark, "w").close()
        raise TimeoutError(f"query of {table} timed out after 30 s")
    return 100


@ray.remote(num_cpus=0.2)
def region_report(region, months):
    return region, sum(ray.get([query.remote(f"{region}_{month}", ATTEMPTS) for month in months]))


@ray.remote(num_cpus=0.2)
def total(reports):
    return sum(amount for _, amount in ray.get(reports))


ray.init()
quarters = {
    "stock": ["2026_01", "2026_02"],
    "sales": ["2026_01", "2026_02", "2026_03"],
    "staff": ["2026_01", "2026_02"],
}
parts = [region_report.remote(region, months) for region, months in quarters.items()]
print("the quarter:", ray.get(total.remote(parts)))

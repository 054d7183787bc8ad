"""Ray Data: a data source of the user's own runs into a limit of its server while it reads."""

import pyarrow as pa
import ray
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask


def read_page(page):
    if page == 2:
        raise PermissionError(f"429 Too Many Requests: page {page} of the crm API")
    yield pa.table({"customer": [page * 10 + n for n in range(10)]})


class CrmSource(Datasource):
    def estimate_inmemory_data_size(self):
        return None

    def get_read_tasks(self, parallelism, per_task_row_limit=None, data_context=None):
        meta = BlockMetadata(num_rows=10, size_bytes=80, input_files=None, exec_stats=None)
        return [ReadTask(lambda page=page: read_page(page), meta) for page in range(4)]


ray.init()
print(ray.data.read_datasource(CrmSource()).count())

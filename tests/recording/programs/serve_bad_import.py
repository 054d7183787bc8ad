"""Ray Serve deploys an application from its import path, and its module needs a package that is not there."""

import os
import time

from ray import serve
from ray.serve.context import _get_global_client
from ray.serve.schema import ServeApplicationSchema, ServeDeploySchema

serve.start(http_options={"port": 18765})
where = {"env_vars": {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}}
app = ServeApplicationSchema(name="translate", import_path="translate_app:app", runtime_env=where)
_get_global_client().deploy_apps(ServeDeploySchema(applications=[app]))
for _ in range(120):
    status = serve.status().applications["translate"]
    if status.status in ("DEPLOY_FAILED", "RUNNING"):
        break
    time.sleep(0.5)
if status.status != "RUNNING":
    raise SystemExit("translate is not up")

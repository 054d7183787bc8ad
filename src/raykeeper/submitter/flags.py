"""The submitter's flags and variables, under KubeRay's names. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from typing import Final

from raykeeper.settings.flags import Flag

FLAGS: Final = (
    Flag("runtime-env-json", "Runtime environment of the job, as a JSON object."),
    Flag("metadata-json", "Metadata of the job, as a JSON object of strings."),
    Flag("entrypoint-resources", "Resources to reserve for the entrypoint, as a JSON object of numbers."),
    Flag("entrypoint-num-cpus", "CPUs to reserve for the entrypoint.", default="0"),
    Flag("entrypoint-num-gpus", "GPUs to reserve for the entrypoint.", default="0"),
)
VARIABLES: Final = {
    "RAY_DASHBOARD_ADDRESS": "Where Ray's dashboard is, such as head-svc:8265. Required.",
    "RAY_JOB_SUBMISSION_ID": "The id that the job gets. Required.",
    "RAY_AUTH_TOKEN": "The token that the dashboard asks for.",
    "RAY_AUTH_TOKEN_PATH": "File with that token, where Kubernetes renews it.",
}

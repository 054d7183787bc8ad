"""`RayjobApi` with the methods, arguments and answers of KubeRay's: errors are logged, and become None or False."""

from __future__ import annotations

import time
from typing import Any

from raykeeper.client.kinds import JOBS
from raykeeper.client.python_client.custom_objects import CustomObjects
from raykeeper.errors import RaykeeperError
from raykeeper.kube.errors import NotFound

TERMINAL_JOB_STATUSES = ["STOPPED", "SUCCEEDED", "FAILED"]
TERMINAL_DEPLOYMENT_STATUSES = ["Complete", "Failed"]


def _is_over(status: Any) -> bool:
    return bool(
        status
        and (
            status.get("jobDeploymentStatus") in TERMINAL_DEPLOYMENT_STATUSES
            or status.get("jobStatus") in TERMINAL_JOB_STATUSES
        )
    )


class RayjobApi:
    """RayJobs for scripts. Where the cluster is, kubeconfig or the pod's service account says."""

    def __init__(self) -> None:
        self._objects = CustomObjects(JOBS, __name__)
        self._log = self._objects.log

    def __del__(self) -> None:
        if hasattr(self, "_objects"):
            self._objects.close()

    def submit_job(self, k8s_namespace: str = "default", job: Any = None) -> Any:
        """The RayJob as Kubernetes made it; None after an error."""
        try:
            return self._objects.create(k8s_namespace, job)
        except RaykeeperError as exc:
            self._log.error("error submitting ray job: %s", exc)
            return None

    def list_jobs(
        self,
        k8s_namespace: str = "default",
        label_selector: str = "",
        async_req: bool = False,  # noqa: ARG002 - KubeRay's signature; the answer is there when this returns
    ) -> Any:
        """The list as Kubernetes has it, with `items`; None after an error."""
        try:
            return self._objects.list(k8s_namespace, label_selector)
        except RaykeeperError as exc:
            self._log.error("rayjobs cannot be listed. error = %s", exc)
            return None

    def get_job(self, name: str, k8s_namespace: str = "default") -> Any:
        """The object; None where there is none, or after an error."""
        try:
            return self._objects.get(k8s_namespace, name)
        except NotFound as exc:
            self._log.error("rayjob resource is not found. error = %s", exc)
        except RaykeeperError as exc:
            self._log.error("error fetching custom resource: %s", exc)
        return None

    def get_job_status(
        self, name: str, k8s_namespace: str = "default", timeout: int = 60, delay_between_attempts: int = 5
    ) -> Any:
        """Its status once there is one; None where there is no such job, or too late."""
        while timeout > 0:
            try:
                status = self._objects.get(k8s_namespace, name, "status").get("status")
            except NotFound as exc:
                self._log.error("rayjob resource is not found. error = %s", exc)
                return None
            except RaykeeperError as exc:
                self._log.error("error fetching custom resource: %s", exc)
                return None
            if status:
                return status
            self._log.info("rayjob %s has no status yet, waiting...", name)
            time.sleep(delay_between_attempts)
            timeout -= delay_between_attempts
        self._log.info("rayjob %s had no status in time", name)
        return None

    def wait_until_job_finished(
        self, name: str, k8s_namespace: str = "default", timeout: int = 60, delay_between_attempts: int = 5
    ) -> bool:
        """Whether it ended in time, well or not."""
        while timeout > 0:
            status = self.get_job_status(name, k8s_namespace, timeout, delay_between_attempts)
            if _is_over(status):
                self._log.info("rayjob %s has finished with status %s!", name, status.get("jobStatus"))
                return True
            self._log.info("rayjob %s has not finished: %s", name, (status or {}).get("jobStatus") or "not started")
            time.sleep(delay_between_attempts)
            timeout -= delay_between_attempts
        self._log.info("rayjob %s did not finish in time", name)
        return False

    def wait_until_job_running(
        self, name: str, k8s_namespace: str = "default", timeout: int = 60, delay_between_attempts: int = 5
    ) -> bool:
        """Whether it ran in time; one that ended before anybody looked did not."""
        while timeout > 0:
            status = self.get_job_status(name, k8s_namespace, timeout, delay_between_attempts)
            if status and status.get("jobDeploymentStatus") == "Running":
                self._log.info("rayjob %s is running", name)
                return True
            if _is_over(status):
                self._log.info("rayjob %s has ended already", name)
                return False
            self._log.info("rayjob %s does not run yet", name)
            time.sleep(delay_between_attempts)
            timeout -= delay_between_attempts
        self._log.info("rayjob %s did not run in time", name)
        return False

    def suspend_job(self, name: str, k8s_namespace: str = "default") -> bool:
        """Whether Kubernetes took the order to suspend it."""
        return self._set_suspend(name, k8s_namespace, True, "suspended")

    stop_job = suspend_job
    """Its name in older versions."""

    def resubmit_job(self, name: str, k8s_namespace: str = "default") -> bool:
        """Whether Kubernetes took the order to resume it."""
        return self._set_suspend(name, k8s_namespace, False, "resubmitted")

    def _set_suspend(self, name: str, namespace: str, value: bool, done: str) -> bool:
        try:
            self._objects.patch(namespace, name, {"spec": {"suspend": value}})
        except NotFound:
            self._log.error("rayjob %s not found in namespace %s", name, namespace)
            return False
        except RaykeeperError as exc:
            self._log.error("rayjob %s could not be %s: %s", name, done, exc)
            return False
        self._log.info("rayjob %s in namespace %s is %s", name, namespace, done)
        return True

    def delete_job(self, name: str, k8s_namespace: str = "default") -> bool:
        """Whether Kubernetes took the order to delete it."""
        try:
            self._objects.delete(k8s_namespace, name)
        except NotFound as exc:
            self._log.error("rayjob custom resource already deleted. error = %s", exc.reason)
            return False
        except RaykeeperError as exc:
            self._log.error("error deleting the rayjob custom resource: %s", exc)
            return False
        self._log.info("rayjob %s in namespace %s is deleted", name, k8s_namespace)
        return True

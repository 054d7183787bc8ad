"""`KubeRayAPIs`: V1 of an API server, ours or KubeRay's.

Answers are tuples: the HTTP status, the problem or None, and what was asked for.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

from raykeeper.client.python_apiserver_client.params import (
    Cluster,
    RayJobInfo,
    RayJobRequest,
    Template,
    cluster_decoder,
    clusters_decoder,
    template_decoder,
    templates_decoder,
)
from raykeeper.errors import Misconfigured, Unavailable

TIMEOUT_SECONDS: Final = 50
ANSWER_LIMIT: Final = 64 << 20
_SAID_CHARS: Final = 300
_WITH_ADDITIONS: Final = "?view=full"
"""Also what KubeRay's API does not have, such as node selectors; its server takes no notice."""
T = TypeVar("T")


class KubeRayAPIs:
    """Compute templates, clusters and job submissions.

    A server that cannot be reached, or whose answer is not JSON, raises `raykeeper.client.Unavailable`.
    """

    def __init__(
        self, server_url: str = "http://localhost:31888", token: str | None = None, wait_interval: int = 2
    ) -> None:
        """`token` is the whole header `Authorization`: bare for a security proxy, `Bearer …` for other servers."""
        if not server_url.startswith(("http://", "https://")):
            raise Misconfigured("server_url", server_url, "it must begin with http:// or https://")
        self.base = server_url.rstrip("/")
        self.wait_interval = wait_interval
        self.api_base = "/apis/v1/"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = token

    def list_compute_templates(self) -> tuple[int, str | None, list[Template] | None]:
        """The templates of all namespaces."""
        return self._get(templates_decoder, "compute_templates")

    def list_compute_templates_namespace(self, ns: str) -> tuple[int, str | None, list[Template] | None]:
        """The templates of one namespace."""
        return self._get(templates_decoder, "namespaces", ns, "compute_templates")

    def get_compute_template(self, ns: str, name: str) -> tuple[int, str | None, Template | None]:
        return self._get(template_decoder, "namespaces", ns, "compute_templates", name)

    def create_compute_template(self, template: Template) -> tuple[int, str | None]:
        return self._order("POST", "namespaces", template.namespace, "compute_templates", body=template.to_dict())

    def delete_compute_template(self, ns: str, name: str) -> tuple[int, str | None]:
        return self._order("DELETE", "namespaces", ns, "compute_templates", name)

    def list_clusters(self) -> tuple[int, str | None, list[Cluster] | None]:
        """The clusters of all namespaces."""
        return self._get(clusters_decoder, "clusters")

    def list_clusters_namespace(self, ns: str) -> tuple[int, str | None, list[Cluster] | None]:
        """The clusters of one namespace."""
        return self._get(clusters_decoder, "namespaces", ns, "clusters")

    def get_cluster(self, ns: str, name: str) -> tuple[int, str | None, Cluster | None]:
        return self._get(cluster_decoder, "namespaces", ns, "clusters", name)

    def create_cluster(self, cluster: Cluster) -> tuple[int, str | None]:
        return self._order("POST", "namespaces", cluster.namespace, "clusters", body=cluster.to_dict())

    def delete_cluster(self, ns: str, name: str) -> tuple[int, str | None]:
        return self._order("DELETE", "namespaces", ns, "clusters", name)

    def get_cluster_status(self, ns: str, name: str) -> tuple[int, str | None, str | None]:
        """Its state, such as `ready`; `creating` until it has one."""
        status, problem, cluster = self.get_cluster(ns, name)
        return status, problem, (cluster.cluster_status or "creating") if cluster else None

    def wait_cluster_ready(self, ns: str, name: str, wait: int = -1) -> tuple[int, str | None]:
        """Return once it is ready; with 408 after `wait` seconds, if that is more than zero."""
        begin = time.monotonic()
        while True:
            status, problem, state = self.get_cluster_status(ns, name)
            if problem is not None or state == "ready":
                return status, problem
            waited = time.monotonic() - begin
            if waited > wait > 0:
                return HTTPStatus.REQUEST_TIMEOUT.value, f"cluster {ns}/{name} is {state} after {waited:.0f} seconds"
            time.sleep(self.wait_interval)

    def get_cluster_endpoints(self, ns: str, name: str, wait: int = -1) -> tuple[int, str | None, str | None]:
        """Host and port of its dashboard inside Kubernetes, once it is ready; `wait` as in `wait_cluster_ready`."""
        status, problem = self.wait_cluster_ready(ns, name, wait)
        if problem is not None:
            return status, problem, None
        status, problem, cluster = self.get_cluster(ns, name)
        if cluster is None:
            return status, problem, None
        port = (cluster.service_endpoint or {}).get("dashboard", "8265")
        return status, None, f"{name}-head-svc.{ns}.svc.cluster.local:{port}"

    def submit_job(self, ns: str, name: str, job_request: RayJobRequest) -> tuple[int, str | None, str | None]:
        """The submission id of a job that was given to a cluster."""
        path = ("namespaces", ns, "jobsubmissions", name)
        return self._send(lambda answer: str(answer["submissionId"]), "POST", path, job_request.to_dict())

    def get_job_info(self, ns: str, name: str, sid: str) -> tuple[int, str | None, RayJobInfo | None]:
        """What Ray says about a job, by its submission id."""
        return self._get(RayJobInfo, "namespaces", ns, "jobsubmissions", name, sid)

    def list_job_info(self, ns: str, name: str) -> tuple[int, str | None, list[RayJobInfo] | None]:
        """What Ray says about all jobs of a cluster."""
        return self._get(_job_infos, "namespaces", ns, "jobsubmissions", name)

    def get_job_log(self, ns: str, name: str, sid: str) -> tuple[int, str | None, str | None]:
        """What a job has printed so far."""
        read = lambda answer: str(answer.get("log", ""))  # noqa: E731 - read once
        return self._get(read, "namespaces", ns, "jobsubmissions", name, "log", sid)

    def stop_ray_job(self, ns: str, name: str, sid: str) -> tuple[int, str | None]:
        return self._order("POST", "namespaces", ns, "jobsubmissions", name, sid)

    def delete_ray_job(self, ns: str, name: str, sid: str) -> tuple[int, str | None]:
        return self._order("DELETE", "namespaces", ns, "jobsubmissions", name, sid)

    def _order(self, method: str, *path: str, body: dict[str, Any] | None = None) -> tuple[int, str | None]:
        status, problem, _ = self._send(lambda _: None, method, path, body)
        return status, problem

    def _get(self, read: Callable[[Any], T], *path: str) -> tuple[int, str | None, T | None]:
        return self._send(read, "GET", path)

    def _send(
        self, read: Callable[[Any], T], method: str, path: tuple[str, ...], body: dict[str, Any] | None = None
    ) -> tuple[int, str | None, T | None]:
        """Status, problem, and what `read` makes of the JSON of a good answer."""
        url = self.base + self.api_base + "/".join(quote(part, safe="") for part in path) + _WITH_ADDITIONS
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers, method=method)  # noqa: S310 - http or https, see above
        try:
            with _DIRECTLY.open(request, timeout=TIMEOUT_SECONDS) as response:
                status, said = response.status, response.read(ANSWER_LIMIT + 1)
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, _problem(exc.code, exc.read(ANSWER_LIMIT)), None
        except (OSError, http.client.HTTPException) as exc:
            raise Unavailable(self.base, str(exc) or type(exc).__name__) from exc
        return status, None, self._read(read, said)

    def _read(self, read: Callable[[Any], T], said: bytes) -> T:
        if len(said) > ANSWER_LIMIT:
            raise Unavailable(self.base, f"its answer is larger than {ANSWER_LIMIT >> 20} MB")
        try:
            answer = json.loads(said)
        except ValueError as exc:
            raise Unavailable(self.base, "its answer is not JSON; is this an API server?") from exc
        if not isinstance(answer, dict):
            raise Unavailable(self.base, "its answer is not a JSON object; is this an API server?")
        return read(answer)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects are answers like others: the token would go along to wherever one points."""

    def redirect_request(self, *_: Any) -> None:
        return None


_DIRECTLY: Final = urllib.request.build_opener(_NoRedirects)


def _job_infos(answer: Any) -> list[RayJobInfo]:
    return [RayJobInfo(one) for one in answer.get("submissions", [])]


def _problem(status: int, said: bytes) -> str:
    """What a server says about its refusal; of one that says it in other words, the beginning."""
    text = said.decode(errors="replace").strip()
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    message = answer.get("message") if isinstance(answer, dict) else None
    return str(message or text[:_SAID_CHARS] or HTTPStatus(status).phrase)

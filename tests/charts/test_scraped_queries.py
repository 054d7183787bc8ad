"""Every query of our dashboards and alerts is asked of a real Prometheus that scraped our programs and a real Ray."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.fixtures import make_namespace, remove_namespace, run_folder
from bed.ports import free_port
from bed.processes import Process
from bed.prometheus import Prometheus
from bed.waiting import PATIENCE_SECONDS, wait_until
from ray_head.live_head import TOKEN, LiveHead, live_head
from support.api_processes import api_server_on
from support.collector_processes import CollectorProcess, ended
from support.operator_processes import operators_of
from support.raycluster_scene import a_group, a_raycluster
from tools.dashboards import CHARTS, DASHBOARDS, WITH_MONITORING, alerts

NAMESPACE: Final = "scraped"
LABELS: Final = {"namespace": "ray-system", "pod": "a-pod"}
JOBS: Final = {"kuberay-operator": "operator", "kuberay-apiserver": "apiserver", "ray-history-server": "history"}
GRAFANA: Final = {"$__rate_interval": "30s", "$job": ".*", "$SessionName": ".*"}
EMPTY_FILE: Final = Path(__file__).parent / "queries_without_data.yaml"
SCRAPED_LAST: Final = (
    'rate(raykeeper_history_requests_total{route="/sessions"}[30s])',
    "rate(raykeeper_apiserver_v2_requests_total[30s])",
    "kuberay_cluster_info",
    "rate(raykeeper_collector_log_bytes_total[30s])",
    "ray_tasks",
    "ray_actors",
)
"""What our requests and the new cluster change, scraped twice; everything else was there before."""
_THRESHOLD: Final = re.compile(r"\s(?:>=?|<=?|==)\s[\d.]+\s*$")

pytestmark = [pytest.mark.bed, pytest.mark.soak]


def panel_queries() -> Iterator[str]:
    for name, file in DASHBOARDS.items():
        for panel in json.loads((CHARTS / file).read_text())["panels"]:
            for target in panel.get("targets", ()):
                query = target["expr"]
                for variable, value in GRAFANA.items():
                    query = query.replace(variable, value)
                yield f"{name} / {panel['title']} / {target['legendFormat']}\t{query}"


def alert_queries() -> Iterator[str]:
    """What alerts compare, without the threshold: nothing is wrong here, so with it they have nothing to say."""
    for chart in WITH_MONITORING:
        for alert in alerts(chart):
            query = alert["expr"].replace("TARGET", f'job="{JOBS[chart]}",namespace="ray-system"')
            present = re.fullmatch(r"absent\((.*) == 1\)", query)
            yield f"alert / {alert['alert']}\t{present[1] if present else _THRESHOLD.sub('', query)}"


QUERIES: Final[Mapping[str, str]] = dict(line.split("\t") for line in [*panel_queries(), *alert_queries()])
WITHOUT_DATA: Final[Mapping[str, str]] = yaml.safe_load(EMPTY_FILE.read_text())
"""Reviewed: queries that may have no answer where all is well, each with the reason."""


@pytest.fixture(scope="module")
def prometheus(
    ray_crds: ControlPlane, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """It has scraped an operator, an API server, a history server, a collector and the Ray beside that."""
    folder = tmp_path_factory.mktemp("scraped")
    bed = run_folder(request.config) / "scraped"
    make_namespace(ray_crds, NAMESPACE)
    with ExitStack() as stack:
        stack.callback(remove_namespace, ray_crds, NAMESPACE)
        operator = stack.enter_context(operators_of(ray_crds, folder)).start(
            f"--watch-namespace={NAMESPACE}", f"--leader-election-namespace={NAMESPACE}", "--enable-metrics"
        )
        server = stack.enter_context(api_server_on(ray_crds, folder))
        history = stack.enter_context(_history(ray_crds, folder))
        head = stack.enter_context(live_head(bed / "ray"))
        flags = ["--role=head", "--ray-cluster-name=demo", f"--events-port={free_port()}", "--metrics-addr=127.0.0.1:0"]
        flags += [f"--store-url=file://{folder}/store", f"--ray-dashboard-address={head.address}"]
        variables = {"RAY_TMP_ROOT": str(head.root), "RAY_AUTH_TOKEN": TOKEN, "POD_NAME": "demo-head"}
        collector = CollectorProcess(folder / "collector.log", flags, variables)
        stack.enter_context(ended(collector.start()))
        stack.enter_context(_working(head, bed / "driver"))
        operator.wait_ready()
        ray_crds.admin.post(f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters", a_raycluster(a_group()))
        operator_port = operator.port_of_metrics()
        targets = {
            "operator": [f"{LOOPBACK}:{operator_port}"],
            "apiserver": [f"{LOOPBACK}:{server.ports.http}"],
            "history": [f"{LOOPBACK}:{history}"],
            "collector": [f"{LOOPBACK}:{collector.wait_for('listening')['addresses'][0][1]}"],
            "ray": [f"{LOOPBACK}:{head.metrics_port}"],
        }
        scraping = Prometheus(bed / "prometheus", targets, LABELS)
        stack.callback(scraping.stop)
        scraping.up()
        asked = [(history, "/sessions"), (server.ports.http, f"/apis/v1/namespaces/{NAMESPACE}/clusters")]
        asked.append((server.ports.http, f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters"))
        stack.enter_context(_asking(asked))
        for query in SCRAPED_LAST:
            wait_until(f"Prometheus knows {query}", partial(scraping.query, query), PATIENCE_SECONDS)
        yield scraping


@contextmanager
def _history(plane: ControlPlane, folder: Path) -> Iterator[int]:
    """The port of a history server that observes the namespace."""
    flags = [f"--store=file://{folder}/store", f"--cache-dir={folder}/cache", "--bind=127.0.0.1:0"]
    flags += [f"--kubeconfig={plane.admin_kubeconfig}", f"--kubernetes-namespaces={NAMESPACE}"]
    flags += [f"--kubernetes-lease-namespace={NAMESPACE}", "--kubernetes-facts=on"]
    (folder / "store").mkdir(exist_ok=True)  # a store that is not there is refused
    log = folder / "history.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "raykeeper.cli.main", "history", *flags]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def port() -> int | None:
        assert process.poll() is None, log.read_text()
        lines = [json.loads(line) for line in log.read_text().split("\n")[:-1]]
        return next((int(line["port"]) for line in lines if line["msg"] == "listening"), None)

    try:
        found = wait_until("the history server listens", port, PATIENCE_SECONDS)
        assert found is not None
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


WORK: Final = """
import time, ray
ray.init(address="auto", log_to_driver=False)
@ray.remote(num_cpus=0)
class Waiting:
    def wait(self): time.sleep(3600)
@ray.remote(num_cpus=0)
def sleep(): time.sleep(3600)
waiting = Waiting.remote()
ray.get([waiting.wait.remote(), sleep.remote()])
"""


@contextmanager
def _working(head: LiveHead, folder: Path) -> Iterator[None]:
    """A driver whose task and actor run as long as the block."""
    folder.mkdir(parents=True, exist_ok=True)
    variables = {"RAY_ADDRESS": f"{LOOPBACK}:{head.gcs_port}", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    driver = Process("driver", [str(head.python), "-c", WORK], folder, variables)
    driver.start()
    try:
        yield
    finally:
        driver.stop(timeout=1.0)


@contextmanager
def _asking(asked: Sequence[tuple[int, str]]) -> Iterator[None]:
    """Requests to our servers, every second, so that there are rates however long the tests take."""
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.wait(1.0):
            for port, path in asked:
                _ask(port, path)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _ask(port: int, path: str) -> None:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
        answer.read()


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_finds_data_or_is_reviewed(name: str, prometheus: Prometheus) -> None:
    found = prometheus.query(QUERIES[name])
    assert found or name in WITHOUT_DATA, QUERIES[name]


def test_what_is_reviewed_is_asked_and_has_a_reason() -> None:
    assert set(WITHOUT_DATA) <= set(QUERIES)
    assert all(WITHOUT_DATA.values())

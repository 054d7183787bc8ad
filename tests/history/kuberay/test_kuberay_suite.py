"""What KubeRay's end-to-end tests of its history server ask, on a dead session in our layout and in KubeRay's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kuberay_client import KubeRayClient
from support.kuberay_suite_sessions import LAYOUTS, Layout, entered, fill_bucket
from support.raycapture import HEAD, NODES, SESSION, WORKER, RayCapture

FILE = "/api/v0/logs/file"
RAYLET = f"node_id={HEAD.node_id}&filename=raylet.out"


@pytest.fixture(scope="module", params=LAYOUTS)
def folder(request: pytest.FixtureRequest, raycapture: RayCapture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout: Layout = request.param
    folder = tmp_path_factory.mktemp(layout)
    asyncio.run(fill_bucket(folder, layout, raycapture, is_over=True))
    return folder


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[KubeRayClient]:
    async with entered(folder, SESSION.session) as client:
        yield client


async def test_a_dead_session_is_listed_under_its_name(client: KubeRayClient) -> None:
    assert (await client.listed(SESSION.namespace, SESSION.cluster))["sessionName"] == SESSION.session


LOG_REQUESTS = {
    **dict.fromkeys(
        [
            f"{RAYLET}&lines=100",
            RAYLET,
            f"{RAYLET}&lines=-1",
            f"{RAYLET}&timeout=5",
            f"{RAYLET}&attempt_number=0",
            f"{RAYLET}&download_filename=custom.log",
            f"{RAYLET}&filter_ansi_code=true",
            f"{RAYLET}&filter_ansi_code=false",
            f"{RAYLET}&suffix=err",
            f"{RAYLET}&lines=100&timeout=15&attempt_number=0&download_filename=custom.log&filter_ansi_code=true",
            f"node_ip={HEAD.ip}&filename=raylet.out",
        ],
        200,
    ),
    **dict.fromkeys(
        [
            f"{RAYLET}&attempt_number=1",
            f"node_id={HEAD.node_id}&filename=nonexistent.log",
            f"node_id={'ab' * 28}&filename=raylet.out",
            f"pid=999999&node_id={HEAD.node_id}",
            "node_ip=192.168.255.255&filename=raylet.out",
        ],
        404,
    ),
    **dict.fromkeys(
        [
            "filename=raylet.out",
            f"node_id={HEAD.node_id}",
            "",
            "pid=5",
            f"{RAYLET}&lines=abc",
            f"{RAYLET}&timeout=invalid",
            f"{RAYLET}&attempt_number=xyz",
            f"{RAYLET}&suffix=invalid",
            f"pid=abc&node_id={HEAD.node_id}",
            "task_id=nonexistent-task-id",
            f"actor_id={'ab' * 16}",
            f"node_id={HEAD.node_id}&filename=../etc/passwd",
            f"node_id={HEAD.node_id}&filename=..",
            f"node_id={HEAD.node_id}&filename=/etc/passwd",
            f"node_id={HEAD.node_id}&filename=../../secret",
            "node_id=../evil&filename=raylet.out",
        ],
        400,
    ),
}


async def test_a_log_request_has_kuberays_status(client: KubeRayClient) -> None:
    answers = {query: await client.get(f"{FILE}?{query}") for query in LOG_REQUESTS}
    assert {query: answered.status for query, answered in answers.items()} == LOG_REQUESTS
    for answered in answers.values():
        assert answered.content
        assert answered.headers["content-type"].startswith("text/plain")


async def test_a_download_is_named_without_quotes(client: KubeRayClient) -> None:
    plain, named = await client.get(f"{FILE}?{RAYLET}"), await client.get(f"{FILE}?{RAYLET}&download_filename=a_b.log")
    assert plain.headers["content-disposition"] == "attachment; filename=file.txt"
    assert named.headers["content-disposition"] == "attachment; filename=a_b.log"


async def test_an_address_means_its_node(client: KubeRayClient) -> None:
    by_id, by_ip = (
        await client.get(f"{FILE}?{RAYLET}"),
        await client.get(f"{FILE}?node_ip={HEAD.ip}&filename=raylet.out"),
    )
    assert by_id.content == by_ip.content


async def test_a_log_has_no_colours_where_none_are_wanted(client: KubeRayClient, raycapture: RayCapture) -> None:
    name = next(name for name, data in raycapture.log_files(HEAD).items() if b"\x1b[" in data)
    query = f"{FILE}?node_id={HEAD.node_id}&filename={name}&lines=-1"
    assert b"\x1b[" in (await client.get(f"{query}&filter_ansi_code=false")).content
    assert b"\x1b[" not in (await client.get(f"{query}&filter_ansi_code=true")).content


async def test_some_task_and_some_actor_have_a_log(client: KubeRayClient) -> None:
    tasks = await client.json("/api/v0/tasks")
    plain = [task["task_id"] for task in tasks["data"]["result"]["result"] if not task["actor_id"] and task["node_id"]]
    actors = (await client.json("/logical/actors"))["data"]["actors"]
    for query in ([f"task_id={id_}" for id_ in plain], [f"actor_id={id_}" for id_ in actors]):
        assert 200 in [(await client.get(f"{FILE}?{one}")).status for one in query[:20]]


async def test_a_tasks_log_is_its_own_part_of_the_workers_file(client: KubeRayClient) -> None:
    detailed = (await client.json("/api/v0/tasks?detail=1&limit=10000"))["data"]["result"]["result"]
    ranges = [(task, task["task_log_info"]) for task in detailed if task["task_log_info"]]
    task, info = next(one for one in ranges if one[1].get("stdout_end", 0) - one[1].get("stdout_start", 0) > 0)
    part = await client.get(f"{FILE}?task_id={task['task_id']}&attempt_number={task['attempt_number']}&lines=-1")
    name = info["stdout_file"].rpartition("/")[2]
    whole = await client.get(f"{FILE}?node_id={task['node_id']}&filename={name}&lines=-1")
    assert part.content == whole.content[info["stdout_start"] : info["stdout_end"]]
    assert len(part.content) < len(whole.content)


async def test_a_dead_session_has_no_streams(client: KubeRayClient) -> None:
    answered = await client.get(f"/api/v0/logs/stream?{RAYLET}")
    assert answered.status == 501
    assert "Log streaming only available for live clusters" in answered.text


async def names(client: KubeRayClient, node_id: str, glob: str | None) -> dict[str, list[str]]:
    query = "" if glob is None else f"&glob={glob}"
    told = await client.json(f"/api/v0/logs?node_id={node_id}{query}")
    assert (told["result"], told["msg"]) == (True, "")
    groups: dict[str, list[str]] = told["data"]["result"]
    return groups


async def test_a_pattern_names_files_relative_to_its_folder(client: KubeRayClient) -> None:
    assert await names(client, HEAD.node_id, "events/*RAYLET*") == {"internal": ["event_RAYLET.log"]}
    assert await names(client, HEAD.node_id, "events%2F*RAYLET*") == {"internal": ["event_RAYLET.log"]}
    assert await names(client, HEAD.node_id, "events/event_JOBS*") == {"internal": ["event_JOBS.log"]}
    assert await names(client, HEAD.node_id, "raylet*") == {"raylet": ["raylet.err", "raylet.out"]}
    assert await names(client, HEAD.node_id, "nonexistent-*.xyz") == {}
    assert all("dashboard" in name for name in (await names(client, HEAD.node_id, "*dashboard*"))["dashboard"])
    assert "events/" in (await names(client, HEAD.node_id, None))["internal"]
    for node in NODES:
        assert await names(client, node.node_id, "events/*")


async def test_two_stars_go_into_folders(client: KubeRayClient, raycapture: RayCapture) -> None:
    found = await names(client, WORKER.node_id, "**/*.out")
    listed = sorted(name for group in found.values() for name in group)
    assert listed == sorted(name for name in raycapture.log_files(WORKER) if name.endswith(".out"))


@pytest.mark.parametrize(("query", "status"), [("glob=../*", 400), ("glob=/etc/*", 400), ("", 400)])
async def test_a_list_of_logs_is_refused_as_kuberay_refuses_it(client: KubeRayClient, query: str, status: int) -> None:
    node = f"node_id={HEAD.node_id}&" if query else ""
    assert (await client.get(f"/api/v0/logs?{node}{query}")).status == status


async def test_the_logs_of_an_unknown_node_are_not_found(client: KubeRayClient) -> None:
    assert (await client.get(f"/api/v0/logs?node_id={'ab' * 28}")).status == 404


async def job_of_some_task(client: KubeRayClient) -> str:
    tasks = (await client.json("/api/v0/tasks"))["data"]["result"]["result"]
    return str(tasks[0]["job_id"])


async def test_the_timeline_is_a_trace_and_its_download_is_named_after_its_job(client: KubeRayClient) -> None:
    job = await job_of_some_task(client)
    for query in ("", f"?job_id={job}", "?download=1", f"?download=1&job_id={job}"):
        answered = await client.get(f"/api/v0/tasks/timeline{query}")
        assert answered.status == 200
        trace = answered.body
        spans = [event for event in trace if event["ph"] == "X"]
        assert {"process_name", "thread_name"} <= {event["name"] for event in trace if event["ph"] == "M"}
        assert all(event["args"]["name"] for event in trace if event["name"] == "process_name")
        assert spans
        assert all(event["cat"] and event["ts"] is not None and event["dur"] is not None for event in spans)
        assert all(event["args"]["task_id"] for event in spans)
        jobs = {event["args"]["job_id"] for event in spans}
        assert jobs == {job} if "job_id" in query else jobs
        named = answered.headers.get("content-disposition", "")
        assert ("attachment" in named and "filename=" in named) is ("download" in query)
        assert (job in named) is (query == f"?download=1&job_id={job}")


async def test_events_are_those_of_a_job_where_one_is_named_even_by_nothing(client: KubeRayClient) -> None:
    told = await client.json("/events")
    assert (told["result"], told["msg"]) == (True, "All events fetched.")
    events = [event for job in told["data"]["events"].values() for event in job]
    assert events
    assert all({"eventId", "sourceType", "severity", "timestamp", "message"} <= event.keys() for event in events)
    for job in ("nonexistent", ""):
        told = await client.json(f"/events?job_id={job}")
        assert (told["result"], told["msg"]) == (True, "Job events fetched.")
        assert told["data"] == {"jobId": job, "events": []}


ACTOR_KEYS = {
    *("actorId", "jobId", "state", "pid", "address", "name", "numRestarts", "actorClass", "className"),
    *("requiredResources", "exitDetail", "reprName", "labelSelector", "startTime", "endTime", "timestamp"),
}


async def test_actors_are_listed_and_one_that_is_not_there_is_an_answer(client: KubeRayClient) -> None:
    told = await client.json("/logical/actors")
    assert (told["result"], told["msg"]) == (True, "All actors fetched.")
    for id_, actor in told["data"]["actors"].items():
        assert actor.keys() >= ACTOR_KEYS
        assert actor["address"].keys() == {"nodeId", "ipAddress", "port", "workerId"}
        one = await client.json(f"/logical/actors/{id_}")
        assert (one["result"], one["msg"], one["data"]["detail"]["actorId"]) == (True, "Actor fetched.", id_)
    none = await client.json(f"/logical/actors/{'f' * 40}")
    assert (none["result"], none["msg"]) == (False, "Actor not found.")


TASK_KEYS = {
    *("task_id", "attempt_number", "name", "state", "job_id", "actor_id", "type", "func_or_class_name"),
    *("parent_task_id", "node_id", "worker_id", "worker_pid", "error_type"),
}
DETAIL_KEYS = TASK_KEYS | {
    *("language", "required_resources", "runtime_env_info", "placement_group_id", "events", "creation_time_ms"),
    *("start_time_ms", "end_time_ms", "task_log_info", "error_message", "is_debugger_paused", "call_site"),
    "label_selector",
}
FINISHED = "filter_keys=state&filter_predicates==&filter_values=FINISHED"
TASK_REQUESTS = {
    **dict.fromkeys(["", "limit=1", "limit=100", "limit=10000", "limit=0", "exclude_driver=true"], 200),
    **dict.fromkeys(["exclude_driver=false", "detail=true", "detail=1", "limit=5&detail=true", FINISHED], 200),
    "filter_keys=state&filter_predicates=!=&filter_values=PENDING_ARGS_AVAIL": 200,
    f"{FINISHED}&filter_keys=task_type&filter_predicates==&filter_values=ACTOR_TASK": 200,
    **dict.fromkeys(["limit=abc", "limit=10001", "exclude_driver=invalid", "detail=invalid", "filter_keys=state"], 400),
    "filter_keys=state&filter_keys=job_id&filter_predicates==&filter_values=FINISHED": 400,
    "filter_keys=state&filter_values=FINISHED": 400,
}


async def test_a_task_request_has_kuberays_status_and_shape(client: KubeRayClient) -> None:
    for query, status in TASK_REQUESTS.items():
        answered = await client.get(f"/api/v0/tasks?{query}")
        assert answered.status == status, query
        if status == 200:
            assert (answered.body["result"], answered.body["msg"]) == (True, "")
            result = answered.body["data"]["result"]
            counts = {"total", "num_after_truncation", "num_filtered", "partial_failure_warning", "warnings", "result"}
            assert result.keys() == counts
            wanted = DETAIL_KEYS if "detail=" in query else TASK_KEYS
            assert all(task.keys() >= wanted for task in result["result"])


async def test_tasks_are_filtered_by_kuberays_names_of_columns(client: KubeRayClient) -> None:
    query = "filter_keys=task_type&filter_predicates==&filter_values=ACTOR_TASK&limit=10000"
    found = (await client.json(f"/api/v0/tasks?{query}"))["data"]["result"]["result"]
    assert {task["type"] for task in found} == {"ACTOR_TASK"}
    job = await job_of_some_task(client)
    query = f"filter_keys=job_id&filter_predicates=%3D&filter_values={job}"
    assert {task["job_id"] for task in (await client.json(f"/api/v0/tasks?{query}"))["data"]["result"]["result"]} == {
        job
    }


RAYLET_KEYS = {
    *("storeStats", "nodeId", "nodeManagerAddress", "nodeManagerHostname", "rayletSocketName"),
    *("objectStoreSocketName", "metricsExportPort", "resourcesTotal", "nodeName", "instanceId", "nodeTypeName"),
    *("instanceTypeName", "startTimeMs", "isHeadNode", "labels", "state", "endTimeMs", "stateMessage"),
}


def check_node(entry: dict[str, Any]) -> None:
    assert entry.keys() >= {"now", "hostname", "ip", "raylet"}
    assert entry["raylet"].keys() >= RAYLET_KEYS


@pytest.mark.parametrize("path", ["/nodes?view=summary", "/nodes"])
async def test_both_nodes_are_summarized(client: KubeRayClient, path: str) -> None:
    told = await client.json(path)
    assert (told["result"], told["msg"]) == (True, "Node summary fetched.")
    assert len(told["data"]["summary"]) == 2
    for entry in told["data"]["summary"]:
        check_node(entry)
    resources = told["data"]["nodeLogicalResources"]
    assert resources.keys() == {node.node_id for node in NODES}
    assert all("memory" in text and "object_store_memory" in text for text in resources.values())


async def test_a_node_is_told_in_detail_and_one_that_is_not_there_is_not_found(client: KubeRayClient) -> None:
    hosts = await client.json("/nodes?view=hostNameList")
    assert (hosts["result"], hosts["msg"]) == (True, "Node hostname list fetched.")
    assert hosts["data"]["hostNameList"]
    for node in NODES:
        told = await client.json(f"/nodes/{node.node_id}")
        assert (told["result"], told["msg"]) == (True, "Node details fetched.")
        check_node(told["data"]["detail"])
        assert isinstance(told["data"]["detail"]["actors"], dict)
    assert (await client.get(f"/nodes/{'ab' * 28}")).status == 404
    assert (await client.get("/nodes?view=other")).status == 400


async def test_what_was_polled_is_told_again(client: KubeRayClient) -> None:
    metadata = (await client.json("/api/v0/cluster_metadata"))["data"]
    assert metadata["rayVersion"]
    assert metadata["pythonVersion"]
    zone = await client.json("/timezone")
    assert zone["offset"]
    assert zone["value"]
    groups = await client.json("/api/v0/placement_groups?detail=1&limit=10000")
    assert groups["result"] is True
    assert groups["data"]["result"]["result"]
    assert "applications" in await client.json("/api/serve/applications/")
    assert "applications" in await client.json("/api/serve/applications")
    status = await client.json("/api/cluster_status")
    assert (status["result"], status["msg"]) == (True, "Got cluster status.")


async def summary(client: KubeRayClient, query: str) -> dict[str, Any]:
    told = await client.json(f"/api/v0/tasks/summarize{query}")
    assert told["result"] is True
    result = told["data"]["result"]
    assert result.keys() >= {"total", "num_after_truncation", "num_filtered", "result", "partial_failure_warning"}
    [found] = result["result"]["node_id_to_summary"].values()
    assert found.keys() == {"summary", "total_tasks", "total_actor_tasks", "total_actor_scheduled", "summary_by"}
    return dict(found)


def walked(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from walked(node["children"])


async def test_the_tree_of_tasks_has_every_kind_of_node(client: KubeRayClient) -> None:
    found = await summary(client, "?summary_by=lineage")
    assert found["summary_by"] == "lineage"
    nodes = list(walked(found["summary"]))
    types = {"NORMAL_TASK", "ACTOR_CREATION_TASK", "ACTOR_TASK", "ACTOR", "GROUP"}
    assert {node["type"] for node in nodes} == types
    assert all(node.keys() >= {"name", "key", "type", "timestamp", "state_counts", "children"} for node in nodes)
    assert all(node["state_counts"] for node in nodes)
    assert any(node["type"] == "NORMAL_TASK" and node["children"] for node in nodes)
    assert any(node["type"] == "GROUP" and len(node["children"]) > 1 for node in nodes)
    actors = [{child["type"] for child in node["children"]} for node in nodes if node["type"] == "ACTOR"]
    assert any("ACTOR_CREATION_TASK" in children for children in actors)
    assert all((node.get("link") is None) is (node["type"] == "GROUP") for node in nodes)
    assert all(node["link"]["type"] in ("task", "actor") and node["link"]["id"] for node in nodes if node.get("link"))


async def test_tasks_are_summed_by_function(client: KubeRayClient) -> None:
    found = await summary(client, "")
    assert found["summary_by"] == "func_name"
    assert found["summary"]
    for name, entry in found["summary"].items():
        assert entry["func_or_class_name"] == name
        assert entry["type"] in ("NORMAL_TASK", "ACTOR_CREATION_TASK", "ACTOR_TASK")
        assert entry["state_counts"]


async def test_metrics_that_nobody_set_up_are_not_served(client: KubeRayClient) -> None:
    assert (await client.get("/api/grafana_health")).status == 501
    assert (await client.get("/api/prometheus_health")).status == 501


async def test_below_a_sessions_own_address_rays_words_stay(client: KubeRayClient) -> None:
    prefix = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}"
    assert (await client.get(f"{prefix}{FILE}?node_id={HEAD.node_id}&filename=nonexistent.log")).status == 500
    assert (await client.json(f"{prefix}/logical/actors/{'f' * 40}"))["result"] is True
    listed = await client.json(f"{prefix}/api/v0/logs?node_id={HEAD.node_id}&glob=events/*RAYLET*")
    assert listed["data"]["result"] == {"internal": ["events/event_RAYLET.log"]}

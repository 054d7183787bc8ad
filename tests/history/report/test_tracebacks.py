"""Tracebacks and last words: what a reader sees first is the user's own."""

from __future__ import annotations

import json

import pytest

from raykeeper.history.report.excerpts import traceback_excerpt
from raykeeper.history.report.last_words import actor_in, last_words
from raykeeper.history.report.model import LineKind, LogSlice
from raykeeper.history.report.rules.drivers import DriverEnd, told_by_message
from raykeeper.history.report.tracebacks import crash_frame, folded, tracebacks_in, user_location
from raykeeper.history.text import end_of

HEADER = "Traceback (most recent call last):\n"
RAY = '  File "/env/lib/python3.11/site-packages/ray/_private/worker.py", line 3009, in get\n    values = x()\n'
SERVE = '  File "/env/lib/python3.11/site-packages/ray/serve/_private/client.py", line 283, in wait\n    raise x\n'
OWN = '  File "/app/train.py", line 34, in main\n    ray.get(refs)\n'
DEEPER = '  File "/app/loss.py", line 40, in loss_of\n    return 1 / 0\n'
AT = "(pid=7, ip=10.0.0.9)"
CYTHON = '  File "pandas/_libs/table.pxi", line 7096, in pandas._libs.table.ObjectTable.get_item\n'
PURE_CYTHON = '  File "pydantic/main.py", line 341, in pydantic.main.BaseModel.__init__\n'
CAUSED = "\n\nThe above exception was the direct cause of the following exception:\n\n"


def meant(text: str) -> tuple[str, str]:
    """The exception that the user means, and where it was raised."""
    raised = tracebacks_in(text)[-1].users
    frame = raised.users_frame
    return raised.error, frame.location.text if frame else ""


@pytest.mark.parametrize(
    ("text", "error", "where"),
    [
        (f"{HEADER}{OWN}{DEEPER}{RAY}{RAY}KeyError: 'x'", "KeyError: 'x'", "loss.py:40"),
        (
            f"{HEADER}{OWN}{RAY}ray.exceptions.RayTaskError(KeyError): ray::f() {AT}\n{DEEPER}KeyError: 1",
            "KeyError: 1",
            "loss.py:40",
        ),
        (
            f"{HEADER}{DEEPER}KeyError: 'url'{CAUSED}{HEADER}{OWN}StageFailed: no url\nknown: a, b",
            "StageFailed: no url",
            "train.py:34",
        ),
        (
            f"ray::Map(f)() {AT}\n{DEEPER}ValueError: no number{CAUSED}"
            f"ray::Map(f)() {AT}\n{RAY}ray.exceptions.UserCodeException: UDF failed\nTo change retries, x",
            "ValueError: no number",
            "loss.py:40",
        ),
        (
            f"{HEADER}{OWN}{RAY}ray.train.WorkerGroupError: Training failed due to worker errors:\n"
            f"[Rank 1 Error Snippet]:\n{HEADER}{DEEPER}FloatingPointError: NaN\n",
            "FloatingPointError: NaN",
            "loss.py:40",
        ),
        (
            "2026-01-01 12:00:00.0 | ERROR | __main__:<module>:9 - caught\n"
            + HEADER
            + "\n> "
            + f"{OWN.strip()}\n    └ <function main at 0x7f>\n\n{DEEPER}\nKeyError: 'x'\n",
            "KeyError: 'x'",
            "loss.py:40",
        ),
        (
            f"{HEADER}{OWN}torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
            f"-- Process 1 terminated with the following error:\n{HEADER}{DEEPER}ValueError: bad rank\n",
            "ValueError: bad rank",
            "loss.py:40",
        ),
        (
            "starting\n" + json.dumps({"level": "error", "exc": f"{HEADER}{OWN}{DEEPER}KeyError: 'x'"}) + "\nleaving",
            "KeyError: 'x'",
            "loss.py:40",
        ),
        (
            f"{HEADER}{SERVE}RuntimeError: {HEADER}{SERVE}{DEEPER}FileNotFoundError: weights\nINFO next entry",
            "FileNotFoundError: weights",
            "loss.py:40",
        ),
        (
            '  + Exception Group Traceback (most recent call last):\n  |   File "/app/train.py", line 34, in main\n'
            "  |     asyncio.run(main())\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
            "  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n"
            '    |   File "/app/loss.py", line 40, in f\n    |     1/0\n    | ZeroDivisionError: division by zero\n'
            "    +------------------------------------\n",
            "ZeroDivisionError: division by zero",
            "loss.py:40",
        ),
        (
            f'multiprocessing.pool.RemoteTraceback: \n"""\n{HEADER}{DEEPER}ValueError: bad shard\n"""{CAUSED}'
            f"{HEADER}{OWN}ValueError: bad shard",
            "ValueError: bad shard",
            "loss.py:40",
        ),
        (
            f"{HEADER}  File \"/app/train.py\", line 5\n    def f(\n         ^\nSyntaxError: '(' was never closed",
            "SyntaxError: '(' was never closed",
            "train.py:5",
        ),
        (
            f"{HEADER}{DEEPER}RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s): bias\n\tetc",
            "RuntimeError: Error(s) in loading state_dict for Net: Missing key(s): bias",
            "loss.py:40",
        ),
        (
            f'{HEADER}  File "/env/lib/python3.11/site-packages/company/cli.py", line 9, in main\n    run()\n'
            '  File "/env/lib/python3.11/site-packages/company/steps.py", line 12, in run\n    np.load(x)\n'
            '  File "/env/lib/python3.11/site-packages/numpy/lib/io.py", line 3, in load\n    open(x)\n'
            "FileNotFoundError: x",
            "FileNotFoundError: x",
            "steps.py:12",
        ),
        (f"{HEADER}{OWN}{DEEPER}{CYTHON}KeyError: 'x'", "KeyError: 'x'", "loss.py:40"),
        (f"{HEADER}{OWN}{PURE_CYTHON}ValidationError: 1 error", "ValidationError: 1 error", "train.py:34"),
        (f"{HEADER}{CYTHON}KeyError: 'x'{CAUSED}{HEADER}{OWN}{RAY}KeyError: 'x'", "KeyError: 'x'", "train.py:34"),
        (f'{HEADER}  File "train.py", line 3, in <module>\n    1/0\nKeyError: 1', "KeyError: 1", "train.py:3"),
    ],
    ids=[
        "the deepest frame that is the user's",
        "of a task, as its driver got it",
        "an exception raised from another is the user's own",
        "wrapped by Ray Data",
        "wrapped by Ray Train, in its message",
        "as loguru writes it",
        "of a process that torch started",
        "in a log of JSON",
        "within the message of another",
        "of a group",
        "raised again in another process: where it came from",
        "no function",
        "what it says is on the next line",
        "all of it is installed",
        "compiled by Cython",
        "Python that was compiled by Cython",
        "raised within compiled code alone, and again out of it",
        "a relative path, as older Pythons write that of a script",
    ],
)
def test_the_exception_that_the_user_means_is_found(text: str, error: str, where: str) -> None:
    assert meant(text) == (error, where)


def test_a_traceback_within_a_message_is_of_the_same_call() -> None:
    trace = (
        f"{HEADER}{SERVE}ray.exceptions.RayTaskError(RuntimeError): ray::ServeReplica:chat:Model.init() {AT}\n{SERVE}"
    )
    [found] = tracebacks_in(f"{trace}RuntimeError: {HEADER}{DEEPER}FileNotFoundError: weights\n")
    assert (found.users.error, found.users.call) == ("FileNotFoundError: weights", "ServeReplica:chat:Model.init")


def test_what_a_logger_writes_before_each_line_is_looked_through() -> None:
    trace = f"EngineCore hit an exception: {HEADER}{RAY}{DEEPER}ValueError: no free blocks"
    text = "".join(f"ERROR 03-21 19:23:35 [core.py:340] {line}\n" for line in trace.splitlines())
    assert meant(f"INFO ready\n{text}(raylet) gone") == ("ValueError: no free blocks", "loss.py:40")
    [found] = tracebacks_in(text)
    assert traceback_excerpt("log", text, found).lines[-1].text == "ValueError: no free blocks"


def test_frames_of_others_name_no_line_of_the_users() -> None:
    assert (
        user_location(RAY + '  File "python/ray/_raylet.pyx", line 2205, in ray._raylet.execute_task\n    x\nE: 1')
        is None
    )


def test_frames_of_others_are_folded_and_the_users_stay() -> None:
    trace = f"{HEADER}{OWN}{RAY}{RAY}{RAY}KeyError: 'x'"
    assert folded(trace).splitlines() == [
        HEADER.strip(),
        *OWN.splitlines(),
        "  ... 3 frames of Ray and other packages",
        "KeyError: 'x'",
    ]
    assert folded(OWN + RAY) == (OWN + RAY).rstrip("\n")


def test_the_lines_that_matter_are_the_users_and_the_error_with_its_message() -> None:
    text = f"{HEADER}{RAY}{RAY}{OWN}{RAY}StageFailed: no url\nknown: a, b\n\nsomething else"
    excerpt = traceback_excerpt("traceback", text, tracebacks_in(text)[0])
    assert [(line.kind, line.text) for line in excerpt.lines] == [
        (LineKind.FOLDED, "  ... 2 frames of Ray and other packages"),
        *((LineKind.OWN, line) for line in OWN.splitlines()),
        (LineKind.FOLDED, "  ... 1 frame of Ray and other packages"),
        (LineKind.ERROR, "StageFailed: no url"),
        (LineKind.LOG, "known: a, b"),
    ]


def test_a_recursion_stays_short() -> None:
    text = HEADER + DEEPER * 5000 + "RecursionError: maximum recursion depth exceeded"
    [trace] = tracebacks_in(text)
    assert len(trace.last.frames) == 200
    assert len(traceback_excerpt("traceback", text, trace).lines) < 40


def test_only_rays_libraries_raise_in_the_name_of_others() -> None:
    def is_by_library(frames: str) -> bool:
        return tracebacks_in(f"{HEADER}{frames}RuntimeError: x")[0].last.is_by_library

    assert is_by_library(OWN + SERVE)
    assert not is_by_library(OWN + RAY)
    assert not is_by_library(SERVE + OWN)


IGNORED = f"Exception ignored in: <function Pool.__del__>\n{HEADER}{OWN}ResourceWarning: unclosed\n"


def test_a_driver_ends_by_its_last_traceback_that_somebody_waits_for() -> None:
    end = DriverEnd(f"step 1\n{HEADER}{DEEPER}KeyError: 'x'\nflushed at the end\n{IGNORED}")
    assert (end.raised, end.last_line) == ("KeyError: 'x'", "ResourceWarning: unclosed")


def test_what_ray_relayed_of_others_is_not_the_drivers_own() -> None:
    relayed = "".join(f"(step pid=7) {line}\n" for line in f"{HEADER}{DEEPER}ValueError: of a task".splitlines())
    end = DriverEnd(f"{relayed}{HEADER}{OWN}RuntimeError: gave up\n(step pid=8) still at work\n")
    assert end.raised == "RuntimeError: gave up"
    assert DriverEnd("(PPO(env=x; multi=True) pid=7, ip=1.2.3.4) a\n(pid=53) b\nmine").own == "mine"
    [(label, trace)] = end.relayed
    assert (label, trace.users.error) == ("step pid=7", "ValueError: of a task")
    repeated = end.text.replace("ValueError: of a task", "ValueError: of a task [repeated 2x across cluster] (Ray ...)")
    assert DriverEnd(repeated).relayed[0][1].users.error == "ValueError: of a task"


DUMP = (
    "*** SIGSEGV received at time=1 ***\nPC: @ 0x7f (unknown) epoll_wait\nFatal Python error: Segmentation fault\n\n"
    "Current thread 0x00007f (most recent call first):\n"
    '  File "/env/lib/python3.11/ctypes/__init__.py", line 519 in at\n'
    '  File "/app/decode.py", line 10 in decode\n  File "/app/main.py", line 17 in thumbnail\n'
)


@pytest.mark.parametrize(
    ("text", "line", "is_error"),
    [
        ("loading\nCUDA error: out of memory\n", "CUDA error: out of memory", True),
        (f"cache: arena 7 is corrupt\n{DUMP}", "cache: arena 7 is corrupt", True),
        (DUMP, "Fatal Python error: Segmentation fault", True),
        ("tokenizer: entry 50257 is out of range\n", "tokenizer: entry 50257 is out of range", True),
        ("CUDA error: out of memory\nstep 4\nstep 5\n", "CUDA error: out of memory", True),
        (f"{HEADER}{DEEPER}KeyError: 'x'\nleaving\n", "KeyError: 'x'", True),
        ("INFO 2026-11-17 08:10:12,593 chat_Model x -- Started initializing replica.\n", "step 3", False),
        ("[2026-11-17 08:13:21,340 E 421 421] core_worker.cc:2465: Actor with class name\n", "step 3", False),
        (" 40%|####      | 4/10 [00:01<00:02, 3.1it/s]\n", "40%|####      | 4/10 [00:01<00:02, 3.1it/s]", False),
    ],
    ids=[
        "its last line",
        "before a crash handler's",
        "a bare crash",
        "on the standard error any line",
        "trouble rather than progress",
        "an exception that it wrote itself",
        "a logger's",
        "of Ray's core",
        "progress",
    ],
)
def test_the_last_words_of_a_process_are_its_own(text: str, line: str, is_error: bool) -> None:
    logs = (
        LogSlice("node", "worker-1.out", ":job_id:01\nstep 3\n", 0, 1),
        LogSlice("node", "worker-1.err", text, 0, 1),
    )
    found = last_words(logs)
    assert (found.text, found.is_error) == (line, is_error)
    assert "worker-1.out:\nstep 3" in [fact.text for fact in found.evidence]


def test_the_standard_error_comes_before_the_output_and_each_line_has_its_address() -> None:
    err = LogSlice("node", "worker-1.err", ":job_id:01\nloading\nCUDA error: é\n", 1000, 41)
    first, second = last_words((LogSlice("node", "worker-1.out", "step 3\n", 0, 1), err)).excerpts
    assert (first.title, second.title) == ("worker-1.err", "worker-1.out")
    assert (first.address.file, first.address.line, first.address.offset) == ("worker-1.err", 43, 1000)
    assert [(line.number, line.text) for line in first.lines] == [(42, "loading"), (43, "CUDA error: é")]


def test_a_crash_is_traced_to_the_line_that_the_users_code_was_at() -> None:
    frame = crash_frame(DUMP)
    assert frame is not None
    assert frame.location.text == "decode.py:10"
    found = last_words((LogSlice("node", "worker-1.err", f"bad frame\n{DUMP}"),))
    assert (found.text, found.where and found.where.text) == ("bad frame", "decode.py:10")


def test_an_actor_says_in_its_log_what_it_is_called() -> None:
    assert actor_in(":job_id:01\n:actor_name:ImplicitFunc\n:actor_name:objective\nstep 1\n") == "objective"
    assert actor_in("actor_name: x\n") == ""


def test_a_process_without_logs_had_no_last_words() -> None:
    assert (last_words(()).text, last_words(()).evidence) == ("", ())


def test_the_end_of_a_text_begins_with_a_whole_line() -> None:
    text = "first line\nsecond line\nthird"
    assert end_of(text, 100) == text
    assert end_of(text, 9) == "...\nthird"
    assert end_of(text, 17) == "...\nsecond line\nthird"
    assert end_of("x" * 50, 10) == "...\n" + "x" * 10


def test_the_first_look_at_a_job_finds_the_exception_above_rays_advice() -> None:
    wrapped = (
        "ray.exceptions.UserCodeException: UDF failed to process a data block.\nTo change retry attempts, configure x"
    )
    heading = "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n"
    message = (
        f"{heading}    return float(text)\nValueError: no number\n\nThe above exception was the cause:\n\n{wrapped}"
    )
    assert told_by_message(message) == "ValueError: no number"
    assert told_by_message(f"{heading}gave up") == "gave up"

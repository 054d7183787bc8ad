"""Entry points taken apart: what runs, and each of its arguments and variables by its name."""

from __future__ import annotations

import pytest

from raykeeper.history.overview.entrypoint import Command, parse_entrypoint


@pytest.mark.parametrize(
    ("entrypoint", "program", "arguments"),
    [
        ("python train.py", "python train.py", {}),
        ("python train.py --lr=0.1 --epochs 3", "python train.py", {"--lr": "0.1", "--epochs": "3"}),
        ("python train.py --fast --lr -0.5", "python train.py", {"--fast": "set", "--lr": "-0.5"}),
        ("python train.py data.csv out", "python train.py", {"argument 1": "data.csv", "argument 2": "out"}),
        ("python train.py model.lr=3 +x=y", "python train.py", {"model.lr": "3", "+x": "y"}),
        ("python train.py --tag a --tag b", "python train.py", {"--tag": "a, b"}),
        ("python train.py -- --lr 3", "python train.py", {"argument 1": "--lr", "argument 2": "3"}),
        ("python train.py --name 'two words'", "python train.py", {"--name": "two words"}),
        ("python -u train.py --lr 1", "python train.py", {"-u": "set", "--lr": "1"}),
        ("python -m jobs.train --lr 1", "python -m jobs.train", {"--lr": "1"}),
        ("torchrun --nproc 4 train.py --lr 1", "torchrun train.py", {"--nproc": "4", "--lr": "1"}),
        ("cd /app && exec python train.py --lr 1; ls", "cd /app && python train.py ; ls", {"--lr": "1"}),
        ("bash -c 'python train.py --lr 1'", "bash -c python train.py", {"--lr": "1"}),
        ("python train.py --lr 1 > out.txt 2>&1", "python train.py", {"--lr": "1"}),
        ("serve run app:main --port 1", "serve", {"argument 1": "run", "argument 2": "app:main", "--port": "1"}),
        ("python train.py --token <redacted>", "python train.py", {"--token": "<redacted>"}),
        ("python train.py --say 'no end", "python train.py", {"--say": "'no", "argument 1": "end"}),
        ("", "", {}),
    ],
)
def test_arguments_have_names(entrypoint: str, program: str, arguments: dict[str, str]) -> None:
    command = parse_entrypoint(entrypoint)
    assert (command.program, dict(command.arguments)) == (program, arguments)


@pytest.mark.parametrize(
    "entrypoint",
    ["LR=1 SEED=2 python train.py", "env LR=1 SEED=2 python train.py", "export LR=1 SEED=2 && python train.py"],
)
def test_variables_before_a_command_are_variables(entrypoint: str) -> None:
    assert parse_entrypoint(entrypoint) == Command("python train.py", (), (("LR", "1"), ("SEED", "2")))


def test_an_argument_with_the_name_of_a_secret_is_masked() -> None:
    command = parse_entrypoint("DB_PASSWORD=a python train.py --api-key b db.password=c --lr 1")
    shown = [*command.variables, *command.arguments]
    assert shown == [
        ("DB_PASSWORD", "<redacted>"),
        ("--api-key", "<redacted>"),
        ("db.password", "<redacted>"),
        ("--lr", "1"),
    ]


def test_an_entry_point_of_any_length_is_cheap() -> None:
    command = parse_entrypoint("python train.py " + "-a 'b " * 100_000)
    assert command.program == "python train.py"
    assert len(str(command)) < 200_000

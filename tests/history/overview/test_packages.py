"""The packages of a runtime environment, one by one, and what else is in it."""

from __future__ import annotations

from typing import Any

import pytest

from raykeeper.history.overview.packages import packages_of


@pytest.mark.parametrize(
    ("requirement", "name", "version"),
    [
        ("torch==2.1.0", "torch", "2.1.0"),
        ("Torch_Vision == 0.16", "torch-vision", "0.16"),
        ("numpy>=1.20,<2", "numpy", ">=1.20,<2"),
        ("requests", "requests", "any version"),
        ("ray[serve, data]==2.60.0", "ray", "2.60.0 [serve, data]"),
        ("pkg==1; python_version < '3.9'", "pkg", "1 ; python_version < '3.9'"),
        ("mine @ https://example.org/mine.whl", "mine", "https://example.org/mine.whl"),
        ("git+https://example.org/a/tool.git@v2#egg=Tool", "tool", "git+https://example.org/a/tool.git@v2#egg=Tool"),
        ("https://example.org/w/thing-1.0-py3.whl", "thing-1.0-py3.whl", "https://example.org/w/thing-1.0-py3.whl"),
        ("--index-url https://example.org/simple", "--index-url", "https://example.org/simple"),
        ("-r requirements.txt", "-r", "requirements.txt"),
        ("./local", "./local", "listed"),
    ],
)
def test_a_requirement_has_a_name_and_a_version(requirement: str, name: str, version: str) -> None:
    for environment in ({"pip": [requirement]}, {"uv": [requirement]}, {"pip": {"packages": [requirement]}}):
        assert packages_of(environment) == ([(name, version)], {})


@pytest.mark.parametrize(
    ("requirement", "name", "version"),
    [
        ("python=3.11", "python (conda)", "3.11"),
        ("conda-forge::numpy=1.26=py311", "numpy (conda)", "1.26=py311"),
        ("scipy>=1.5", "scipy (conda)", ">=1.5"),
        ("pip", "pip (conda)", "any version"),
    ],
)
def test_condas_packages_are_told_apart(requirement: str, name: str, version: str) -> None:
    environment = {"conda": {"name": "mine", "dependencies": [requirement, {"pip": ["torch==2"]}]}}
    assert packages_of(environment) == ([(name, version), ("torch", "2")], {"conda": {"name": "mine"}})


def test_what_is_no_package_stays_in_the_environment() -> None:
    environment: dict[str, Any] = {
        "pip": {"packages": ["a==1"], "pip_check": False},
        "uv": "requirements.txt",
        "conda": "my-env",
        "working_dir": "gcs://x",
        "env_vars": {"A": "<redacted>"},
    }
    packages, rest = packages_of(environment)
    assert packages == [("a", "1")]
    assert rest == {**environment, "pip": {"pip_check": False}}


@pytest.mark.parametrize("odd", [{"pip": 3}, {"pip": {"packages": "x"}}, {"conda": {"dependencies": 7}}, {"uv": None}])
def test_odd_environments_are_left_as_they_are(odd: dict[str, Any]) -> None:
    assert packages_of(odd) == ([], odd)


def test_odd_requirements_are_listed_as_they_are() -> None:
    packages, _ = packages_of({"pip": [None, "", "???", {"a": 1}]})
    assert packages == [("null", "any version"), ("???", "listed"), ('{"a": 1}', "listed")]

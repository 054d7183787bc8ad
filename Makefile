# The commands of the README. `make help` lists them; every one sets up what it needs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
VENV := .venv
RUN := $(VENV)/bin
UV = $(shell command -v uv || echo $(RUN)/uv)
PINS := requirements/dev.txt
NOT_UNIT := bed or node or soak
# Real servers and real Ray share two cores with the tests beside them: what ran out of time there gets one turn alone.
tested = $(1) $(2) || { echo "--- once more and alone: what failed beside other tests"; \
	$(1) --last-failed --last-failed-no-failures=none; }

.PHONY: help setup demo check static format lint types imports generated generate unit test build bed-tests e2e soak bench pins clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(VENV)/.pins ## make .venv from the hashed pins, with the commands `raykeeper` and `bed`

$(VENV)/.pins: $(PINS) pyproject.toml tests/pyproject.toml
	@echo "--- Python packages into $(VENV)"
	@test -x $(RUN)/python || python3 -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(RUN)/python || python3 -m venv $(VENV)
	@command -v uv >/dev/null || test -x $(RUN)/uv || { echo "--- uv from PyPI"; $(RUN)/python -m pip install -q 'uv>=0.13,<1'; }
	@$(UV) pip install -q --python $(RUN)/python --require-hashes -r $(PINS)
	@$(UV) pip install -q --python $(RUN)/python --no-deps --no-build-isolation -e . -e tests
	@touch $@

demo: setup ## a real Ray that fails, dies and is remembered, without Kubernetes; DEMO_ARGS="--exit" or "-- python my.py"
	@$(RUN)/raykeeper demo $(DEMO_ARGS)

check: static unit ## what needs no server: the static checks and the unit tests

static: format lint types imports generated ## format, lint, types, import contracts, generated files

format: setup
	@echo "--- format"; $(RUN)/ruff format --check -q . || { echo "run: $(RUN)/ruff format ."; exit 1; }

lint: setup
	@echo "--- lint"; $(RUN)/ruff check -q .

types: setup
	@echo "--- types"; $(RUN)/mypy

imports: setup
	@echo "--- import contracts"; $(RUN)/lint-imports

generated: setup
	@echo "--- generated files"; $(RUN)/python tools/generate.py --check

generate: setup ## write the generated files anew
	@$(RUN)/python tools/generate.py

unit: setup
	@echo "--- unit tests"; $(call tested,$(RUN)/pytest -q -m "not ($(NOT_UNIT))",-n 2 --dist loadfile)

test: unit bed-tests e2e ## every test; builds the test bed first, once

build: setup ## the binaries of the test bed, into the per-user cache
	@$(RUN)/bed build

bed-tests: build ## tests against a real control plane
	@echo "--- tests against a real control plane"; $(call tested,$(RUN)/pytest -q -m "bed and not (node or soak)",-n 2 --dist loadfile)

e2e: build ## tests on a real node with real Ray pods (root on Linux)
	@echo "--- tests on a real node"; $(call tested,$(RUN)/pytest -q -rs -m "node and not soak")

soak: build ## faults that take minutes on purpose
	@echo "--- soak"; $(RUN)/pytest -q -m soak --timeout 3600

bench: build ## the benchmarks, three quarters of an hour; BENCH="gets idle" runs some of them, BENCH=--help lists all
	@$(RUN)/python -m bench $(BENCH)

pins: setup ## resolve the dependencies anew into requirements/
	@export UV_CUSTOM_COMPILE_COMMAND="make pins"; \
	for out in "runtime.txt" "dev.txt --group dev"; do set -- $$out; \
	  $(UV) pip compile -q --universal --generate-hashes --python-version 3.11 pyproject.toml "$${@:2}" -o requirements/$$1; done

clean: ## remove the environment and every cache inside the checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist build

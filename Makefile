# The commands of the README. `make help` lists them; every one sets up what it needs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
VENV := .venv
RUN := $(VENV)/bin
UV = $(shell command -v uv || echo $(RUN)/uv)
PINS := requirements/dev.txt
DEMO_PINS := src/raykeeper/demo/requirements-ray.txt
NOT_UNIT := bed or node or interop or soak
# Programs are started hundreds of times here: compiled anew each time, the operator's start takes twice the CPU.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo check static format lint types imports generated generate unit test build bed-tests e2e fuzz interop soak bench pins wheel image bump advisories clean

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
	@echo "--- generated files"; $(RUN)/python -m tools.generate --check

generate: setup ## write the generated files anew
	@$(RUN)/python -m tools.generate

unit: setup
	@echo "--- unit tests"; $(RUN)/pytest -q -m "not ($(NOT_UNIT))" -n 2 --dist loadfile

test: unit bed-tests e2e ## every test; builds the test bed first, once

build: setup ## the binaries of the test bed, into the per-user cache
	@$(RUN)/bed build

bed-tests: build ## tests against a real control plane
	@echo "--- tests against a real control plane"; $(RUN)/pytest -q -m "bed and not (node or interop or soak)" -n 3 --dist loadfile --no-loadscope-reorder

e2e: build ## tests on a real node with real Ray pods (root on Linux)
	@echo "--- tests on a real node"; $(RUN)/pytest -q -rs -m "node and not (interop or soak)"

fuzz: setup ## random walks over everything that comes from outside, FUZZ_SECONDS (30) each; FUZZ_SEED repeats one
	@echo "--- fuzz"; FUZZ_SECONDS=$${FUZZ_SECONDS:-30} $(RUN)/pytest -q -s --timeout 1800 tests/fuzz
	@echo "--- properties, with new inputs"; FUZZ_SECONDS=1 $(RUN)/pytest -q -m "hypothesis and not ($(NOT_UNIT))" -n 2 --dist loadfile

interop: build ## beside other projects' real programs, which are built first: KubeRay, Kueue, four batch schedulers, Traefik, Helm 3.22 and 4.3, Argo CD, Flux, chart-testing
	@$(RUN)/bed build --interop >/dev/null
	@echo "--- interop"; $(RUN)/pytest -q -m interop --timeout 1200

soak: build ## faults that take minutes on purpose, and an older Kubernetes, which is built first
	@$(RUN)/bed build --soak >/dev/null
	@echo "--- soak"; $(RUN)/pytest -q -m soak --timeout 3600

bench: build ## the benchmarks, an hour and a half; BENCH="gets idle" runs some of them, BENCH=--help lists all
	@$(RUN)/python -m bench $(BENCH)

pins: setup ## resolve the dependencies anew into requirements/: packages of Python, of the demo's Ray, and of Debian for the image
	@export UV_CUSTOM_COMPILE_COMMAND="make pins"; \
	compile="$(UV) pip compile -q --universal --generate-hashes --python-version 3.11"; \
	$$compile pyproject.toml -o requirements/runtime.txt; \
	$$compile pyproject.toml --group dev -o requirements/dev.txt; \
	for group in build collector; do $$compile --group $$group -c requirements/dev.txt -o requirements/$$group.txt; done; \
	$(RUN)/python -c 'from raykeeper.demo.settings import RAY_VERSION; print(f"ray[default]=={RAY_VERSION}")' | \
	  $$compile --no-annotate - -o $(DEMO_PINS); \
	$(RUN)/python -m tools.image.pins

wheel: setup ## dist/raykeeper-*.whl with everything inside: CRDs, charts, Ray's dashboard
	@rm -f dist/*.whl; $(RUN)/python -m tools.wheel dist

image: wheel ## dist/raykeeper-*.tar: the container images for amd64 and arm64 as OCI archives, without Docker
	@$(RUN)/python -m tools.image archive --wheel dist/*.whl --out dist

bump: setup ## change the version everywhere: make bump VERSION=0.2.0; docs/releasing.md has the checklist
	@test -n "$(VERSION)" || { echo "say which: make bump VERSION=0.2.0"; exit 2; }
	@$(RUN)/python -m tools.release $(VERSION)

advisories: setup ## known advisories about every pinned package; asks PyPI, and fails for what it cannot find out
	@for pins in requirements/runtime.txt requirements/dev.txt $(DEMO_PINS); do \
	  echo "--- $$pins"; $(UV) tool run -q pip-audit --strict --disable-pip --require-hashes -r $$pins; done

clean: ## remove the environment and every cache inside the checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist build

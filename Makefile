# Every chore of this repository, one word each. `make` alone prints them.

# Of the Pythons that will do, the system's comes first: it is built with profile-guided optimisation,
# which one that pyenv compiled mostly is not, and workflows run a tenth faster on it.
PYTHON ?= $(shell for one in /usr/bin/python3 python3; do \
    "$$one" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
        && echo "$$one" && exit; done; echo python3)
VENV   := .venv
BIN    := $(VENV)/bin
SEEDS  ?= 300
CASES  ?= 10000
MINUTES ?= 30
WORKERS ?= 3
ARGS   ?=

LISTEN ?= 127.0.0.1:8080
UP_PID := .tidemill/up.pid
UP_LOG := .tidemill/up.log
IS_UP  := kill -0 "$$(cat $(UP_PID) 2>/dev/null || echo none)" 2>/dev/null

RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
PYTEST    := $(BIN)/pytest -q --timeout=300
PIP       := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo up down seed migrate build test kafka check bench load-test load-test-flaky load-test-workflow simulate chaos fuzz lock proto clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV_STAMP) ## create .venv with everything that tests and checks need

demo: $(RUN_STAMP) ## run two workflows, kill a worker on the way, and watch them end
	$(BIN)/python examples/demo.py $(ARGS)

up: $(RUN_STAMP) ## serve everything here in the background: make up LISTEN=127.0.0.1:8080
	@mkdir -p .tidemill
	@if $(IS_UP); then echo "process $$(cat $(UP_PID)) serves already"; exit 0; fi; \
	$(BIN)/tidemill up --listen $(LISTEN) $(ARGS) > $(UP_LOG) 2>&1 & echo $$! > $(UP_PID); \
	until grep -q ' serves$$' $(UP_LOG); do \
	    $(IS_UP) || { cat $(UP_LOG); rm -f $(UP_PID); exit 1; }; sleep 0.1; \
	done; \
	echo "http://$(LISTEN) serves (process $$(cat $(UP_PID)), log in $(UP_LOG)); make seed, make down"

down: ## stop what `make up` started, and let running tasks finish
	@if ! $(IS_UP); then echo "nothing is up"; rm -f $(UP_PID); exit 0; fi; \
	kill "$$(cat $(UP_PID))"; \
	while $(IS_UP); do sleep 0.1; done; \
	rm -f $(UP_PID); echo "stopped"

seed: $(RUN_STAMP) ## 20 jobs and a data pipeline for the server at LISTEN, to have something to look at
	$(BIN)/python examples/seed.py http://$(LISTEN)

migrate: $(RUN_STAMP) ## bring the schema of a store up to date: make migrate ARGS='--store postgresql://…'
	$(BIN)/tidemill migrate $(ARGS)

build: $(RUN_STAMP) ## put a wheel and a source archive into dist/
	$(BIN)/python -m hatchling build -d dist

check: $(DEV_STAMP) ## lint, formatting, types, import rules, house style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/style

test: check kafka ## check, then every test, then a bounded part of the simulator
	$(PYTEST) tests/domain tests/identity/test_rules.py -n $(WORKERS) --cov=tidemill.domain \
	    --cov-branch --cov-fail-under=100 --cov-report=term-missing:skip-covered
	$(PYTEST) tests -n $(WORKERS) -m 'not alone' --ignore=tests/style --ignore=tests/domain
	$(PYTEST) tests -m alone --ignore=tests/style --ignore=tests/domain
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

kafka: $(DEV_STAMP) ## fetch Apache Kafka for the tests into .venv, once; needs java and mvn
	$(BIN)/python tests/servers/kafka_jars.py

simulate: $(DEV_STAMP) ## run the simulator: make simulate SEEDS=100000
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(ARGS)

chaos: $(DEV_STAMP) ## kill real processes and servers while workflows run: make chaos MINUTES=30
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(ARGS)

fuzz: $(DEV_STAMP) ## send requests of every kind to every operation: make fuzz CASES=10000
	$(BIN)/python -m tests.fuzz --cases $(CASES) $(ARGS)

bench: $(DEV_STAMP) ## measure speed and weight, and how cost grows: make bench QUICK=1 for less, ARGS=--help
	$(BIN)/python bench/run.py $(if $(QUICK),--quick) $(ARGS)

load-test: $(RUN_STAMP) ## 50,000 jobs for the server at API_URL, seen to their end: make load-test COUNT=2000
	@$(LOAD) jobs $(LOAD_ARGS)

load-test-flaky: $(RUN_STAMP) ## 500,000 jobs, a fifth of them flaky: as many dead letters as chance would have?
	@$(LOAD) flaky $(LOAD_ARGS)

load-test-workflow: $(RUN_STAMP) ## 50,000 workflows of three steps
	@$(LOAD) workflow $(LOAD_ARGS)

LOAD      := $(BIN)/python -m bench.load
LOAD_ARGS  = $(if $(API_URL),--url $(API_URL)) $(if $(COUNT),--count $(COUNT)) $(ARGS)

lock: ## write requirements/*.txt from pyproject.toml and *.in; ARGS=--upgrade for newer versions
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) $(ARGS) -o requirements/run.txt \
	    pyproject.toml requirements/run.in
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) $(ARGS) -o requirements/dev.txt $(EXTRAS) \
	    -c requirements/run.txt pyproject.toml requirements/run.in requirements/dev.in
	for wanted in bench/peers/requirements/*.in; do \
	    .venv-lock/bin/uv pip compile $(LOCK_FLAGS) $(ARGS) -o "$${wanted%.in}.txt" "$$wanted" || exit 1; \
	done

EXTRAS := --extra postgres --extra kafka --extra redis --extra secrets --extra speed
LOCK_FLAGS := --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-header --no-emit-index-url

proto: $(DEV_STAMP) ## generate tidemill/protocol/generated from proto/
	$(BIN)/python proto/generate.py

clean: ## remove what the other targets made
	rm -rf $(VENV) .venv-lock .tidemill .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis
	rm -rf .import_linter_cache .coverage .bench-peers build dist bench/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Tidemill needs Python 3.11 or later; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "installing Tidemill and what it runs on into $(VENV) (once; some 20 packages)"
	$(PIP) install --require-hashes -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "installing Tidemill and its tests' tools into $(VENV) (once; some 50 packages)"
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@ $(RUN_STAMP)

# Every chore of this repository, one word each. `make` alone prints them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SEEDS  ?= 300
MINUTES ?= 30
ARGS   ?=

RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
PIP       := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test kafka check bench simulate chaos lock proto clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV_STAMP) ## create .venv with everything that tests and checks need

demo: $(RUN_STAMP) ## run two workflows, kill a worker on the way, and watch them end
	$(BIN)/python examples/demo.py $(ARGS)

check: $(DEV_STAMP) ## lint, formatting, types, import rules, house style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/style

test: check kafka ## check, then every test, then a bounded part of the simulator
	$(BIN)/pytest -q tests/domain --timeout=300 --cov=tidemill.domain --cov-branch --cov-fail-under=100 \
	    --cov-report=term-missing:skip-covered
	$(BIN)/pytest -q tests --timeout=300 --ignore=tests/style --ignore=tests/domain
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

kafka: $(DEV_STAMP) ## fetch Apache Kafka for the tests into .venv, once; needs java and mvn
	$(BIN)/python tests/servers/kafka_jars.py

simulate: $(DEV_STAMP) ## run the simulator: make simulate SEEDS=100000
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(ARGS)

chaos: $(DEV_STAMP) ## kill real processes and servers while workflows run: make chaos MINUTES=30
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(ARGS)

bench: $(DEV_STAMP) ## measure speed and weight, and how cost grows with size; QUICK=1 for less
	$(BIN)/python bench/run.py $(if $(QUICK),--quick) $(ARGS)

lock: ## write requirements/*.txt from pyproject.toml and *.in; ARGS=--upgrade for newer versions
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) $(ARGS) -o requirements/run.txt \
	    pyproject.toml requirements/run.in
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) $(ARGS) -o requirements/dev.txt $(EXTRAS) \
	    -c requirements/run.txt pyproject.toml requirements/run.in requirements/dev.in

EXTRAS := --extra postgres --extra kafka --extra redis --extra secrets --extra speed
LOCK_FLAGS := --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-header --no-emit-index-url

proto: $(DEV_STAMP) ## generate tidemill/protocol/generated from proto/
	$(BIN)/python proto/generate.py

clean: ## remove what the other targets made
	rm -rf $(VENV) .venv-lock .tidemill .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf .import_linter_cache .coverage build dist bench/results
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

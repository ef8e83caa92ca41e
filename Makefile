# `make` alone prints what there is. Works with GNU make 3.81 and newer.

PYTHON ?= python3
VENV := .venv
RUNTIME := $(VENV)/.runtime
STAMP := $(VENV)/.installed
PIP := $(VENV)/bin/python -m pip install --progress-bar off --disable-pip-version-check -c constraints.txt
# One line for each package that pip fetches. A pipe has the status of its last command, so that of pip is kept as the stamp.
SHORT := sed -un -e '/\.metadata/d' -e 's/^ *Downloading /  /p' -e 's/^ *Using cached /  /p' -e 's|^Processing .*/|  |p' \
  -e 's/^Installing collected packages.*/Unpacking them; this takes a while too./p'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test test-rest test-long test-frameworks test-containers test-clients test-all slowest check docs clean

help:
	@echo "make setup   make $(VENV) and install everything into it (PYTHON=... chooses the Python, 3.11 or newer)"
	@echo "make demo    break a network by distributing it, repair it by tuning, and write a page; downloads no data"
	@echo "make test    the unit tests, and a real job of each trainer: four minutes on two cores"
	@echo "make test-rest   whole jobs, gangs, servers, browsers and databases; CI runs these as well"
	@echo "make test-all  all tests but those of containers and clients; installs the extra 'frameworks'"
	@echo "make test-long   jobs on whole clusters, killed in many ways: run it before you close an issue"
	@echo "make test-containers  build the images of docker/ and run compose.yaml's services in containers; needs root and Podman"
	@echo "make test-clients  install SageMaker's own clients apart, and run them against hpo serve"
	@echo "make check   ruff's lint and format, and mypy"
	@echo "make docs    write what is generated in docs/ anew, and build the site from docs/ into site/"
	@echo "make clean   remove caches and build output; $(VENV) stays"

setup: $(STAMP)

# An environment that works is kept, so only a change of the two files below costs another install.
$(RUNTIME): pyproject.toml constraints.txt
	@rm -f $@
	@if ! $(VENV)/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	  command -v "$(PYTHON)" >/dev/null 2>&1 \
	    || { echo "$(PYTHON) is not here. Install Python 3.11 or newer, or say which: make setup PYTHON=python3.12" >&2; exit 1; }; \
	  "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "$$("$(PYTHON)" --version 2>&1) is too old; Warmband needs 3.11 or newer: make setup PYTHON=python3.12" >&2; exit 1; }; \
	  "$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null \
	    || { echo "$(PYTHON) has no venv or no ensurepip. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }; \
	  echo "Making $(VENV) with $$("$(PYTHON)" --version 2>&1)."; \
	  "$(PYTHON)" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing Warmband, Ray, XGBoost and PyTorch into $(VENV). The first time takes minutes; each package as it comes:"
	@{ $(PIP) -e . && touch $@; } | $(SHORT)
	@test -e $@
	@echo "Ready. Next: make demo"

# The tools of developers, and the packages of all optional features.
$(STAMP): $(RUNTIME)
	@rm -f $@
	@echo "Installing the tools of tests and checks into $(VENV); each package as it comes:"
	@{ $(PIP) -e '.[dev]' && $(PIP) --no-deps hpbandster && touch $@; } | $(SHORT)
	@test -e $@
	@echo "Ready. Next: make test"

demo: $(RUNTIME)
	@echo "A network that four workers break, tuned for four workers: one to two minutes. Loading Ray, XGBoost and PyTorch ..."
	@PYTHONDONTWRITEBYTECODE= $(VENV)/bin/python -m experiments.demo

# Where Python is told to keep no bytecode, each of some thousand processes would compile its modules anew.
# Two processes of tests keep two cores at work; a test file runs in one of them. Times go to .pytest_cache/times.
PYTEST := PYTHONDONTWRITEBYTECODE= $(VENV)/bin/python -m pytest --dist loadfile --no-loadscope-reorder

test: $(STAMP)
	$(PYTEST) -n 2 --junitxml=.pytest_cache/times/$@.xml --hypothesis-profile=quick tests/unit tests/smoke

# Tests with the fixture `database`, which `make test-rest` runs on PostgreSQL as well.
RECORD := $(wildcard tests/*/hpo/record) tests/process/hpo/notices tests/job/hpo/serve/test_fuzz.py tests/system/hpo/serve/test_faults.py

# Everything else that CI runs.
test-rest: $(STAMP)
	$(PYTEST) -n 2 --junitxml=.pytest_cache/times/$@.xml tests/job tests/process tests/ray tests/system
	$(PYTEST) -n 2 --junitxml=.pytest_cache/times/$@-postgresql.xml --database=postgresql -m database $(RECORD)

# Whole clusters and killed jobs, for whose parts the others have tests, and all examples of the unit tests' properties.
test-long: $(STAMP)
	$(PYTEST) -n 2 --junitxml=.pytest_cache/times/$@.xml tests/long
	$(PYTEST) -n 2 --junitxml=.pytest_cache/times/$@-properties.xml tests/unit -m hypothesis

# One process: each trial is a whole start of a framework, on two workers.
test-frameworks: $(STAMP)
	$(VENV)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[frameworks]'
	$(PYTEST) -n 1 tests/frameworks

# The first time builds images of some GB, in minutes; they are kept in ~/.cache/warmband-containers, or WARMBAND_CONTAINERS.
test-containers: $(STAMP)
	$(PYTEST) -n 0 tests/containers

# Each in a virtual environment of its own, in ~/.cache/warmband/clients, or WARMBAND_CLIENTS.
CLIENTS ?= $(or $(WARMBAND_CLIENTS),$(HOME)/.cache/warmband/clients)
test-clients: $(STAMP)
	@mkdir -p "$(CLIENTS)"
	@for each in "sdk2 sagemaker==2.257.*" "sdk3 sagemaker>=3.27,<4" "cli awscli"; do \
	  set -- $$each; test -e "$(CLIENTS)/$$1/.installed" && continue; \
	  $(VENV)/bin/python -m venv "$(CLIENTS)/$$1" && "$(CLIENTS)/$$1/bin/pip" install -q --disable-pip-version-check "$$2" \
	    && touch "$(CLIENTS)/$$1/.installed" || exit 1; done
	WARMBAND_CLIENTS="$(CLIENTS)" $(PYTEST) -n 0 tests/clients

# All that is missing is said before the first test.
test-all: $(STAMP)
	@$(VENV)/bin/python tests/support/programs.py
	@$(MAKE) --no-print-directory test test-rest test-long test-frameworks

# The table in CONTRIBUTING.md, from the last runs.
slowest: $(STAMP)
	$(VENV)/bin/python -m tests.support.slowest CONTRIBUTING.md $(wildcard .pytest_cache/times/*.xml)

check: $(STAMP)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

docs: $(STAMP)
	$(VENV)/bin/python -m hpo.cli.reference docs/reference/cli.md docs/reference/tuner.md docs/guides/serve.md docs/guides/sagemaker-clients.md
	$(VENV)/bin/python docs/house.py docs/background/architecture.md
	$(VENV)/bin/python -m tests.support.objective_table docs/reference/xgboost-objectives.md
	$(VENV)/bin/python -m experiments.results_page README.md docs/*/*.md docs/results
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --clean -f docs/site/mkdocs.yml
	@echo "The site: site/index.html"

clean:
	rm -rf build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find experiments hpo tests trainers -type d -name __pycache__ -prune -exec rm -rf {} +

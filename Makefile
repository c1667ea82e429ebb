# make reproduce   set up, then the paper's ablation over k: table, figure, report
# make test        set up, then the test suite in two processes (WORKERS=8 make test: in eight)
# make bench       set up, then our speed beside plain paths and other programs
# make lint        set up, then ruff's rules alone
# make check       set up, then ruff's format and rules, and mypy
# make ci          set up, then the packages that only tests need, on top of `make extras`; see CONTRIBUTING.md
# make extras      set up, then the packages of other systems: SimulEval, COMET, phrase-based SMT (tests without them skip)
# make lm          set up, then the language model (240 MB, Gemma terms of use) of the translators lm-es-en and lm-pl-en
# make site        the documentation as a static site in site/, from an environment of its own
# make dist        set up, then wheel and source archive of sqa and of sqa-services in dist/
# make elasticsearch   set up, then start the server of docker-compose.yml and fill its index (needs ELASTIC_PASSWORD)
# make setup       create .venv with the `sqa` command; repeated when the pinned versions change
#
# PYTHON=/path/to/python3.12 make setup   takes another interpreter (3.11 or newer)
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make setup   takes the small torch without CUDA

PYTHON ?= python3
VENV := .venv
WORKERS ?= 2
STAMP := $(VENV)/.sqa-installed
DOCS := $(VENV)-docs

.PHONY: setup extras reproduce test bench lint check ci lm site dist elasticsearch

# editable_mode=compat: `import sqa` finds the package even from the folder above a checkout that is itself called sqa
setup: $(STAMP)

$(STAMP): requirements.lock requirements-torch.lock pyproject.toml services/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "make: Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1 | tail -n 1); set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --config-settings editable_mode=compat -e . -e ./services
	@touch $@

extras: setup
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-extras.lock

lm: setup
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-lm.lock

reproduce: setup
	$(VENV)/bin/sqa ablation configs/ablation.yaml

# Hundreds of tests start Python, which is slow without compiled modules, so PYTHONDONTWRITEBYTECODE is unset.
test: setup
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

bench: setup
	$(VENV)/bin/python -m benchmarks

lint: setup
	$(VENV)/bin/ruff check .

check: setup
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

ci: extras
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-ci.lock

site: $(DOCS)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet

$(DOCS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(PYTHON) -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*extras["docs"], sep="\n")' | \
	  $(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r /dev/stdin
	@touch $@

dist: setup
	rm -rf dist build services/build
	$(VENV)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist . ./services
	for folder in . services; do (cd $$folder && $(abspath $(VENV))/bin/python -c \
	  'import setuptools.build_meta as b; b.build_sdist("$(CURDIR)/dist")' >/dev/null) || exit 1; done

elasticsearch: setup
	docker compose up --wait elasticsearch
	$(VENV)/bin/python -m guessers.elastic.index configs/train_guessers.yaml:bm25-lucene

# Two commands need nothing but Python (3.11 or newer) and make:
#   make demo    environment, install, the main commands on embedded tables, and a page to look at
#   make test    the same for the test suite
.PHONY: demo test pages simulations engines install lint types docs site core coverage mutants watch benchmarks \
    benchmarks-disk clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed
CORE := .venv-core
# One thread for each of the two workers: the numerics would otherwise fight over the cores. Compiled
# files are kept, even where the environment says not to: many tests start errcomp as a command.
SETTINGS := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST := $(SETTINGS) $(BIN)/python -m pytest -p no:cacheprovider

demo: $(RUN)
	$(BIN)/errcomp audit neusight --by device,mode
	$(BIN)/errcomp claims search neusight --figure neusight=2.3% --figure habitat=121.4% --figure micro=30.8% --top 3
	$(BIN)/errcomp propagate --run H100/gpt3_27/inference/2048/2
	$(BIN)/errcomp calibrate evaluate --estimator linear --split leave-model-out
	$(BIN)/errcomp halflife show ort
	$(BIN)/errcomp report neusight -o report.html

# What the documentation shows is run by `make docs`. Counting covered lines takes half as long again,
# so only CI does, and `make coverage`.
test coverage: $(DEV)
	$(PYTEST) -q -n 2 --dist worksteal -m "not slow and not distributed and not browser" tests \
	    --ignore=tests/docs \
	    --doctest-modules errcomp examples \
	    $(if $(CI)$(filter coverage,$@),--cov --cov-report=term --cov-fail-under=95)

# That intervals cover, detectors keep quiet and estimators recover what was planted; then what
# must hold of any input, on many more of them.
simulations: $(DEV)
	$(PYTEST) -q -n 2 --dist worksteal -m slow tests
	$(PYTEST) -q -n 2 --dist worksteal -m "hypothesis and not slow" --hypothesis-profile=thorough \
	    tests

# What pages look like and do in a browser, on screen and in print. Needs Chromium and pdftotext.
pages: $(DEV)
	$(PYTEST) -q -n 2 --dist worksteal -m browser tests/browser

# Apart: Dask and Spark, which take longer than all other engines together. Spark needs Java.
engines: $(DEV)
	$(PYTEST) -q -m distributed tests/tables/engine tests/test_jobs_on_dask.py

# Whether tests notice what changes: 200 mutants, of which 95 % must be killed. The first time all
# fast tests are run to learn which lines each runs. For more: MUTANTS="--seed 2 --sample 60".
mutants: $(DEV)
	$(BIN)/python tests/mutants.py $(MUTANTS)

install: $(DEV)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python tools/wording.py

types: $(DEV)
	$(BIN)/mypy

# Every command shown in the README and the docs is run and its output compared; the site is built.
docs: $(DEV) site
	$(PYTEST) -q -m "not site" tests/docs

# The documentation as a site, in build/docs/html, and what it promises checked.
site: $(DEV)
	ERRCOMP_SITE=$(CURDIR)/build/docs $(PYTEST) -q -m site tests/docs

# The core dependencies alone must do: a second environment, with the wheel and no extra, and the tests
# that may end differently there, which conftest.py sees to be marked. With another Python any test may:
#   make core PYTHON=python3.13 CORE=.venv-core-3.13 SELECT="not slow and not extras"
SELECT ?= core and not slow and not extras
core:
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt . \
	    pytest pytest-timeout pytest-xdist hypothesis
	$(SETTINGS) $(CORE)/bin/pytest -p no:cacheprovider -q -n 2 \
	    --dist worksteal --without-extras -m "$(SELECT)" tests --ignore=tests/docs

# Whether errcomp became slower: its own ratios, in its own history, through its own gate.
watch: $(DEV)
	$(BIN)/python benchmarks/watch.py

# Every benchmark, and the page of the documentation that is made of them; peers are installed at
# first. The other one writes 2 GB into a temporary folder.
benchmarks: $(DEV)
	$(BIN)/python benchmarks/run_all.py

benchmarks-disk: $(DEV)
	$(BIN)/python benchmarks/bench_grouped_disk.py
	$(BIN)/python benchmarks/page.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(RUN): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[figures]'
	touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(RUN)

clean:
	rm -rf $(VENV) .venv-core* benchmarks/.peers .coverage* .mypy_cache .ruff_cache .hypothesis dist build

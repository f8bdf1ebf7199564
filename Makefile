# Two commands need nothing but Python (3.11 or newer) and make:
#   make demo    environment, install, the main commands on built-in tables, and a page to look at
#   make test    the same for the test suite
.PHONY: demo test pages simulations engines install lint types docs site core lowest fuzz coverage mutants watch \
    benchmarks benchmarks-disk sbom clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed
CORE := .venv-core
LOWEST := .venv-lowest
SBOM := .venv-sbom
# One thread for each of the two workers: the numerics would otherwise fight over the cores. Compiled
# files are kept, even where the environment says not to: many tests start errcomp as a command.
SETTINGS := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST := $(SETTINGS) $(BIN)/python -m pytest -p no:cacheprovider

demo: $(RUN)
	$(BIN)/errcomp audit neusight --by device,mode
	$(BIN)/errcomp claims search neusight --value neusight=2.3% --value habitat=121.4% --value micro=30.8% --top 3
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

# That intervals cover, detectors keep quiet and estimators recover what was planted, and whatever
# else takes a second or more; then what must hold of any input, on many more of them. PART=2/8 runs
# the second of eight parts.
simulations: $(DEV)
	$(PYTEST) -q -n 2 --dist worksteal -m "slow and not distributed" tests --doctest-modules errcomp \
	    $(if $(PART),--part $(PART))
	$(PYTEST) -q -n 2 --dist worksteal -m "hypothesis and not slow" --hypothesis-profile=thorough \
	    tests $(if $(PART),--part $(PART))

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
	$(PYTEST) -q -n 2 --dist loadfile -m "not site" tests/docs

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

# The lowest versions that pyproject.toml allows must do: a third environment, and the tests of what
# reads files, holds tables, computes and stores. Old packages may warn of what newer ones will drop.
# Left out is what depends on the version by itself: pictures and the class names of Matplotlib, keys
# called "a.b" (DuckDB 2), a booster of xgboost 3.1, digits of SciPy's quantiles of Student t, and
# hostile names and types, which older engines refuse themselves.
LOWEST_TESTS := $(addprefix tests/,tables readers stats metrics drivers caveats halflife documents \
    calibration/estimators calibration/modelfile cli/commands)
LOWEST_LACKS := names_of_what_is_made_here or (test_on_random_rows_split_points and parameters3) \
    or test_archived_files_predict or test_predicting_needs_numpy_and_scipy_only
lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tools/lowest.py drivers figures formats calibration postgres jobs duckdb > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install \
	    -c $(LOWEST)/constraints.txt -e '.[drivers,figures,formats,calibration,postgres,jobs,duckdb]' \
	    pytest pytest-timeout pytest-xdist hypothesis mpmath jsonschema
	$(SETTINGS) $(LOWEST)/bin/python -m pytest -p no:cacheprovider -q -n 2 --dist worksteal \
	    --without-extras -W ignore::DeprecationWarning -k "not ($(LOWEST_LACKS))" \
	    -m "not slow and not distributed and not mpl_image_compare" \
	    $(LOWEST_TESTS) --ignore=tests/halflife/test_stored.py --ignore=tests/drivers/test_stored.py \
	    --ignore=tests/tables/engine/test_hostile.py

# Damaged files in all readers and containers, for so long: no crash, no hang, no value that changes
# unseen. What is found is in build/fuzz. `make test` does the same for seconds.
MINUTES ?= 30
fuzz: $(DEV)
	$(SETTINGS) $(BIN)/python tests/fuzzing/fuzz.py --minutes $(MINUTES)

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

# What errcomp is made of, in the versions of constraints.txt: build/sbom.json, in CycloneDX's format.
# The tool that lists them (Apache-2.0) has an environment of its own, apart from what it lists.
sbom: $(DEV)
	$(PYTHON) -m venv $(SBOM)
	$(SBOM)/bin/python -m pip --disable-pip-version-check --quiet install cyclonedx-bom==7.5.0
	mkdir -p build
	$(SBOM)/bin/python -W ignore -m cyclonedx_py requirements constraints.txt --pyproject pyproject.toml \
	    --mc-type library --output-reproducible --short-PURLs -o build/requirements.json
	$(BIN)/python tools/sbom.py build/requirements.json > build/sbom.json

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(RUN): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[figures]'
	touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(RUN)

clean:
	rm -rf $(VENV) .venv-core* $(LOWEST) $(SBOM) benchmarks/.peers .coverage* .mypy_cache .ruff_cache .hypothesis dist build

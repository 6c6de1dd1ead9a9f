# Every target sets up what it needs: a virtual environment in .venv with pinned packages.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.done
DOCS := build/docs-venv/.done

# Some containers tell Python to keep no bytecode: then each of the hundred processes that tests start would make its own.
export PYTHONDONTWRITEBYTECODE =

.PHONY: test soak soak-short demo bench pages docs hold hold-quick lock clean

test: $(SETUP)  ## style, types, import contract, tests, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist worksteal -m "not soak" --durations=15

# Tests of kills and browsers wait for other processes, so that a third worker finds room on two cores.
soak: $(SETUP)  ## the long tests as a whole: kills, browsers, long statistics
	BOTHWORLDS_SOAK=whole $(BIN)/pytest -n 3 --dist worksteal -m soak tests

soak-short: $(SETUP)  ## the same tests in short, as continuous integration runs them
	$(BIN)/pytest -n 3 --dist worksteal -m soak tests

demo: $(SETUP)  ## the paper's algorithm and its rivals in every regime: a table, and comparison/report.html
	$(BIN)/bothworlds compare

bench: $(SETUP)  ## speed against NumPy, start-up time, designs, all algorithms
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/first_rounds.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/designs.py
	$(BIN)/python benchmarks/algorithms.py
	$(BIN)/python benchmarks/negative_control.py
	$(BIN)/python benchmarks/sampled.py
	$(BIN)/python benchmarks/production.py
	$(BIN)/python benchmarks/click_costs.py
	$(BIN)/python benchmarks/evaluation.py

pages: $(SETUP)  ## write the generated pages of the reference, and the numbers and files that pages show
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/page_numbers.py

docs: $(DOCS) build/sample/report.html  ## the documentation site, in build/site; nothing in it is fetched from elsewhere
	NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --quiet --clean
	@echo "build/site/index.html"

hold: $(SETUP)  ## does the paper hold? all studies, resumable, and research/does-the-paper-hold.md
	$(BIN)/python studies/hold.py

hold-quick: $(SETUP)  ## all studies in small; fails if a regret is above its bound
	$(BIN)/python studies/hold.py --quick

lock: $(SETUP)  ## pin the development packages anew
	$(BIN)/pip install --quiet --upgrade --group dev
	$(BIN)/pip freeze --exclude bothworlds > requirements-dev.txt

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build

# Bytecode of all packages takes pip as long as everything else; that of what is imported is kept.
$(SETUP): requirements-dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

build/sample/report.html: $(SETUP)
	$(BIN)/bothworlds compare --output build/sample --force

$(DOCS): pyproject.toml
	test -x build/docs-venv/bin/python || $(PYTHON) -m venv build/docs-venv
	build/docs-venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	build/docs-venv/bin/python -m pip install --quiet --disable-pip-version-check --group docs
	touch $@

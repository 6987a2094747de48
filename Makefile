# Needs Python 3.11 or newer, git and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# Compiled files are kept: tests start many processes, and pytest rewrites every test before it compiles it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test lint types pytest docs bench evidence format clean

install: .venv/installed  ## into .venv

demo: .venv/installed  ## learn ten digits from twenty labels
	@$(BIN)/protocon demo

test: lint  ## everything that must pass before a change lands; types are checked beside the tests
	@$(MAKE) --no-print-directory -j2 types pytest

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/installed
	$(BIN)/mypy

pytest: .venv/installed
	@# One thread per test, and one worker more than there are cores: tests wait for processes and browsers now and then.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

docs: .venv/installed  ## the documentation as a site in site/; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

bench: .venv/installed  ## quick forms of the benchmarks of speed; draws benchmarks/RESULTS.md
	$(BIN)/python benchmarks/run_all.py

evidence: .venv/installed  ## docs/evidence.md and its figures, from benchmarks/results
	$(BIN)/python -m benchmarks.evidence

format: .venv/installed  ## make the code look as `make test` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	@echo "installing into .venv (a few minutes, and 7 GB, most of it PyTorch's)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@# Tests compare losses with lightly's. Its dependencies are not needed, and one of them overwrites lightning-fabric.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps lightly
	@# As pip compiles what it copies.
	$(BIN)/python -m compileall -q src
	@touch $@
	@echo "installed: . $(CURDIR)/$(BIN)/activate makes the command protocon known here"

clean:
	rm -rf site .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis

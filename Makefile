# Everything happens in .venv (or VENV=elsewhere); each target does the set-up that it needs.
PYTHON ?= python3
PROCESSES ?= 2
VERSIONS ?= 3.12 3.13
TESTED ?= tests
VENV ?= .venv
DIST ?= dist
DOCS ?= .venv-docs
SITE ?= build/site
UV ?= 0.13.8
CYCLONEDX ?= 7.5.0
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -q --disable-pip-version-check
INSTALLED := $(VENV)/installed

# Neighbours in a file share what is slow to set up, so each process begins with a half of all and takes from the other.
TESTS := $(BIN)/python -m pytest -q --dist worksteal -n
# Where a test has that mark: to collect all the others as well takes each process longer than most of these tests.
LONG = $$(grep -rl --include='test_*.py' 'mark\.long' tests | sort)

.PHONY: install demo test long pages nightly check format-check lint types format docs rendered wheel from-wheel versions lock sbom clean

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "$(PYTHON) is Python %d.%d and tacit needs 3.11 or newer: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "setting up $(VENV) (once, a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps -e .
	@touch $@

demo: $(INSTALLED)
	$(BIN)/tacit demo

# A process more than cores: of two, one waits an eighth of the time, for processes that it started or for the clock.
test: $(INSTALLED)
	$(TESTS) $$(($(PROCESSES) + 1))

# Programs are optimized (in CI those of one test) and figures printed as users have them; `make test` spares both
# (tests/conftest.py). Two more processes, for the two files that begin wait for minutes: their devices hold reports
# back, as real ones do.
long: $(INSTALLED)
	$(TESTS) $$(($(PROCESSES) + 2)) -m "long and not nightly" --hypothesis-profile full $(LONG)

# The commands of every page at the sizes that are printed, in a fresh clone; `make nightly` runs them smaller.
pages: $(INSTALLED)
	PAGES=as-printed $(BIN)/python -m pytest -q -n 0 -m "long or nightly" tests/test_pages.py

# Every test with other examples than yesterday's, and whatever XLA compiles compiled anew.
nightly: $(INSTALLED)
	rm -rf .jax_cache
	$(TESTS) $(PROCESSES) -m "" --hypothesis-profile full

check: format-check lint types test

format-check: $(INSTALLED)
	$(BIN)/ruff format --check .

lint: $(INSTALLED)
	$(BIN)/ruff check .

types: $(INSTALLED)
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# SITE/index.html, from the pages alone, by the packages of the extra `docs` in an environment of their own; a
# warning is an error. LINKS=all also asks every address of the web.
docs: $(DOCS)/installed
	rm -rf $(SITE)
	$(DOCS)/bin/python -m sphinx -W --keep-going -q -E -j auto -d $(dir $(SITE))doctrees docs $(SITE)
ifeq ($(LINKS),all)
	$(DOCS)/bin/python -m sphinx -q -b linkcheck -d $(dir $(SITE))doctrees docs $(dir $(SITE))links
endif
	@echo "$(SITE)/index.html"

$(DOCS)/installed: pyproject.toml
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > $(DOCS)/wanted
	@$(DOCS)/bin/python -m pip -q --disable-pip-version-check install -r $(DOCS)/wanted
	@touch $@

# The pages, or parts of them, that are made from the program.
rendered: $(INSTALLED)
	$(BIN)/python -m tests.render_cli
	$(BIN)/python -m tests.render_api
	$(BIN)/python -m tests.render_mechanisms
	$(BIN)/python -m tests.render_licences
	$(BIN)/python -m tests.server.test_openapi

# DIST/tacit-VERSION-py3-none-any.whl, as `pip install` takes it; with the site for `tacit docs` by `make docs wheel`.
wheel: $(INSTALLED)
	rm -rf build/lib build/bdist.* $(DIST)
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(DIST) .

# TESTED against the installed wheel, beside the newest packages that pyproject.toml allows on this Python, in an
# environment of their own that is removed whatever comes of it.
from-wheel: wheel
	@trap 'rm -rf $(VENV)-wheel' EXIT; trap 'exit 130' INT TERM; set -ex; rm -rf $(VENV)-wheel; \
	$(PYTHON) -m venv $(VENV)-wheel; \
	$(VENV)-wheel/bin/python -m pip -q --disable-pip-version-check install "$$(echo $(DIST)/*.whl)[dev]"; \
	$(VENV)-wheel/bin/python -c 'import jax, sys; print("Python", sys.version.split()[0], "with JAX", jax.__version__)'; \
	$(VENV)-wheel/bin/python -m pytest -q --dist worksteal -n $(PROCESSES) $(TESTED)

# The same with each of VERSIONS; one that is not on this machine is an error before anything is tested.
versions: $(INSTALLED)
	@for version in $(VERSIONS); do .ci/python $$version > /dev/null || exit; done
	@for version in $(VERSIONS); do \
	$(MAKE) --no-print-directory from-wheel PYTHON="$$(.ci/python $$version)" || exit; done

# The newest versions that pyproject.toml allows, with the SHA-256 of each of their files; commit the result with what
# changed. Then `make install rendered`, for the licences. requirements.lock is for Python 3.11 and what the tests need,
# deployment.lock for every Python and what a server needs, in the same versions.
COMPILED := .venv-lock/bin/uv pip compile -q pyproject.toml --python-version 3.11 --generate-hashes --no-header --no-annotate
lock:
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip -q --disable-pip-version-check install uv==$(UV)
	$(COMPILED) --upgrade --extra dev -o requirements.lock
	$(COMPILED) --upgrade --extra deployment --universal -c requirements.lock -o deployment.lock
	rm -rf .venv-lock

# DIST/tacit.cdx.json: what a server of this wheel consists of, as CycloneDX has it, from an environment of just that.
sbom: wheel
	rm -rf $(VENV)-sbom $(VENV)-sbom-tool
	$(PYTHON) -m venv $(VENV)-sbom-tool
	$(VENV)-sbom-tool/bin/python -m pip -q --disable-pip-version-check install cyclonedx-bom==$(CYCLONEDX)
	$(PYTHON) -m venv --without-pip $(VENV)-sbom
	$(PIP) --python $(VENV)-sbom/bin/python install --require-hashes -r deployment.lock
	$(PIP) --python $(VENV)-sbom/bin/python install --no-deps $(DIST)/*.whl
	$(VENV)-sbom-tool/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	-o $(DIST)/tacit.cdx.json $(VENV)-sbom
	rm -rf $(VENV)-sbom $(VENV)-sbom-tool

clean:
	rm -rf .venv .venv-docs .venv-lock .venv-wheel .venv-sbom .venv-sbom-tool .mypy_cache .ruff_cache .pytest_cache .hypothesis .jax_cache build $(DIST) src/*.egg-info

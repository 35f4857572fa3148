# setup: a virtual environment in .venv with pybridge and a Julia. The other targets make it when it is missing.
# What is up to date is not made again; `make clean` forgets everything.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PRECIOUS: .venv-3.%/python.stamp
.PHONY: help setup test test-all test-quick test-julia test-julia-code test-julia-others test-python test-oldest test-code-and-oldest test-portable demo bench bench-polybench bench-choices bench-first zoo docs lint dist clean

BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# The newest Python and the newest JAX that it takes, and the oldest pair that is supported.
PYTHON ?= $(shell .ci/pythons | head -1)
OLDEST := 3.11
OLDEST_PYTHON ?= $(shell .ci/pythons $(OLDEST))
# Nothing where the oldest Python is missing, or is the only one.
OLDEST_VENV := $(if $(filter-out $(PYTHON),$(OLDEST_PYTHON)),.venv-oldest/python.stamp)
# What depends on JAX: all tests but those of Julia, of kernels and libraries, of comparisons, of the command line
# and of other people's packages, which `make zoo` runs on both. Of the derivatives each primitive once, in narrower
# dtypes: what Julia makes of Programs is the same. A test has three sets of its parameters (tests/conftest.py).
OLDEST_TESTS := tests/frontend tests/transformations tests/engines \
	tests/derivatives/test_cases.py tests/derivatives/test_activity.py \
	$(filter-out tests/api/test_library%,$(wildcard tests/api/test_*.py)) tests/checkout/test_conformance.py \
	$(addprefix --deselect tests/derivatives/test_cases.py::,test_natively test_in_float64)
# Processes that run tests side by side; each has a Julia of its own.
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n > 4 ? 4 : n)))
JULIA_SOURCES := $(shell find julia -name '*.jl' -o -name '*.txt' -o -name '*.toml' | grep -v Manifest)

help:
	@echo "make setup | test | test-quick FILES=... | test-all | demo | bench | bench-polybench | bench-choices | bench-first | zoo | docs | lint | dist | clean"

setup: .venv/image.stamp

# python3-venv is a package of its own on Debian; without it `python -m venv` cannot bring pip.
define make_venv
@[ -n "$(1)" ] || { echo "Python 3.11 or newer is needed; on Debian 12: apt-get install python3" >&2; exit 1; }
@$(1) -c 'import ensurepip, venv' 2>/dev/null || { \
	echo "$(1) has no venv module, which Debian packages as python3-venv" >&2; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		|| { echo "install it: apt-get install python3-venv" >&2; exit 1; }; \
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q python3-venv; }
$(1) -m venv $(2)
endef

.venv/pyvenv.cfg:
	$(call make_venv,$(PYTHON),.venv)

.venv-oldest/bin/python:
	$(call make_venv,$(OLDEST_PYTHON),.venv-oldest)

# enzyme-ad has wheels for some platforms only, and pybridge works without it.
.venv/python.stamp: pyproject.toml | .venv/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,watched,enzyme-jax]' \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,watched]'
	touch $@

.venv-oldest/python.stamp: pyproject.toml tests/oldest.txt | .venv-oldest/bin/python
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c tests/oldest.txt \
		-e '.[dev,enzyme-jax]'
	touch $@

# Reports are looked at in a browser; where none can be had, those tests are skipped and say so.
.venv/browser.stamp: | .venv/pyvenv.cfg
	@command -v chromium chromium-browser google-chrome >/dev/null || [ "$$(id -u)" != 0 ] \
		|| ! command -v apt-get >/dev/null \
		|| { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -q --no-install-recommends chromium; } >/dev/null \
		|| echo "there is no browser for the tests of reports"
	@touch $@

.venv/julia.stamp: .venv/python.stamp $(JULIA_SOURCES)
	$(BIN)/pybridge setup --yes --no-image
	touch $@

# JaxprAD compiled into Julia takes minutes of one core, which each process of the tests would take anew without.
.venv/image.stamp: .venv/julia.stamp
	.ci/part "image" $(BIN)/pybridge setup --yes
	touch $@

# The runs share what Julia compiles for the first, which does not depend on Python's version or on JAX's.
test test-all: export PYBRIDGE_CACHE := $(CURDIR)/.venv/test-cache
test test-all: export PYBRIDGE_TEST_TIMES := $(CURDIR)/.venv/test-times
test: .venv/python.stamp
	rm -rf $(PYBRIDGE_CACHE) $(PYBRIDGE_TEST_TIMES)
	+$(MAKE) --jobs=$(JOBS) .venv/image.stamp lint .venv/browser.stamp $(OLDEST_VENV) test-julia-others test-code-and-oldest
	+$(MAKE) test-python
	$(BIN)/python -m tests.times $(PYBRIDGE_TEST_TIMES)

# Every combination of parameters, on each Python there is; then every operation at every dtype, the planted faults
# and the whole zoo. Hours.
test-all: export PYBRIDGE_TESTS := full
test-all: test
	+for release in 3.13 3.12 3.11; do \
		python="$$(.ci/pythons $$release)"; \
		if [ -n "$$python" ] && [ "$$python" != "$(PYTHON)" ]; then $(MAKE) test-on-$$release; fi; done
	$(BIN)/python -m tests.dtypes
	$(BIN)/python -m tests.planted
	+$(MAKE) zoo

test-on-%: .venv/image.stamp .venv-%/python.stamp
	.venv-$*/bin/python -m pytest -n $(JOBS) --dist worksteal

.venv-3.%/python.stamp: pyproject.toml
	$(call make_venv,$$(.ci/pythons 3.$*),.venv-3.$*)
	.venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# What FILES, or the files that differ from the last commit, are likeliest to break.
test-quick: .venv/julia.stamp
	$(BIN)/python -m tests.quick $(FILES)

test-julia:
	+$(MAKE) --jobs=2 test-julia-others test-julia-code

test-julia-code: .venv/image.stamp
	.ci/part "Julia's tests of kernels" $(BIN)/python -m tests.julia_tests -O2 --code

test-julia-others: .venv/image.stamp
	.ci/part "Julia's other tests" $(BIN)/python -m tests.julia_tests -O1 --others

# Julia's tests of kernels take less time than its others, which run on one core.
test-code-and-oldest: test-julia-code
	+$(MAKE) test-oldest

test-python: .venv/image.stamp
	.ci/part "newest Python" $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-oldest: export PYBRIDGE_TESTS ?= once
test-oldest: .venv/image.stamp $(OLDEST_VENV)
	@$(BIN)/python -c 'import jax, sys; print("tests ran on Python %d.%d" % sys.version_info[:2], "with JAX", jax.__version__)'
	@if [ -n "$(OLDEST_VENV)" ]; then .ci/part "oldest Python" .venv-oldest/bin/python -m pytest -n $(JOBS) --dist worksteal $(OLDEST_TESTS); \
	else echo "not on Python $(OLDEST), which is $(if $(OLDEST_PYTHON),the only Python here,not on this machine)"; fi

# What may work on systems other than Linux, where native kernels are not tested.
test-portable: .venv/julia.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/ir tests/frontend

# Without the image, whose compilation takes longer than what it saves here.
demo: .venv/julia.stamp
	$(BIN)/python examples/demo.py

# Some twenty minutes, most of which JAX spends on the unrolled loop of 1000; docs/measurements/benchmarks.md comes from it.
bench: .venv/image.stamp
	$(BIN)/pybridge bench --json benchmarks/results/$$(date +%F).json --docs

# Other people's programs, in sizes of which JAX needs minutes for some; docs/measurements/polybench.md comes from it.
bench-polybench: .venv/image.stamp
	$(BIN)/pybridge bench --suite polybench --json benchmarks/results/polybench-$$(date +%F).json --docs

# What execute="auto" chooses, compared with both of its options; docs/measurements/choices.md comes from it.
bench-choices: .venv/image.stamp
	$(BIN)/pybridge bench --suite choices --json benchmarks/results/choices-$$(date +%F).json --docs

# From `import jax` to the gradient, in new processes; docs/measurements/first_results.md comes from it.
bench-first: .venv/image.stamp
	$(BIN)/python -m benchmarks.first --json benchmarks/results/first-$$(date +%F).json --docs

# Other people's packages, in environments of their own; docs/measurements/zoo.md and runs.md come from it. Goes on where it was interrupted.
zoo: .venv/image.stamp
	$(BIN)/python -m zoo
	$(BIN)/python -m zoo.runs

# The site, in site/. Without --quiet, which would make --strict see no warnings.
docs: .venv/python.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Needs no Julia.
lint: .venv/python.stamp
	$(BIN)/ruff check .
	.ci/part "types" $(BIN)/mypy pybridge
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

# What goes to PyPI, into dist/; with RELEASE=0.1.0 it fails where that is not the version of pyproject.toml.
dist: .venv/python.stamp
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	@[ -z "$(RELEASE)" ] || [ -f "dist/pybridge_jax-$(RELEASE).tar.gz" ] \
		|| { echo "the version in pyproject.toml is not $(RELEASE)" >&2; exit 1; }

clean:
	rm -rf .venv .venv-oldest .venv-3.* .venv-zoo-* site dist build demo-output .pytest_cache .ruff_cache .mypy_cache

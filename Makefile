# setup: a virtual environment in .venv with pybridge and a Julia. The other targets make it when it is missing.
# What is up to date is not made again; `make clean` forgets everything.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup test test-julia test-python demo bench docs lint clean

BIN := .venv/bin
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Processes that run tests side by side; each has a Julia of its own.
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n > 4 ? 4 : n)))
JULIA_SOURCES := $(shell find julia -name '*.jl' -o -name '*.toml' | grep -v Manifest)

help:
	@echo "make setup | test | demo | bench | docs | lint | clean"

setup: .venv/image.stamp

# python3-venv is a package of its own on Debian; without it `python -m venv` cannot bring pip.
.venv/bin/python:
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or newer is needed; on Debian 12: apt-get install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module, which Debian packages as python3-venv" >&2; \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
			|| { echo "install it: apt-get install python3-venv" >&2; exit 1; }; \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q python3-venv; }
	$(PYTHON) -m venv .venv

# enzyme-ad has wheels for some platforms only, and pybridge works without it.
.venv/python.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,enzyme-jax]' \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

.venv/julia.stamp: .venv/python.stamp $(JULIA_SOURCES)
	$(BIN)/pybridge setup --yes --no-image
	touch $@

# JaxprAD compiled into Julia takes minutes of one core. Julia's own tests do without it and take the others.
.venv/image.stamp: .venv/julia.stamp
	$(BIN)/pybridge setup --yes
	touch $@

test:
	+$(MAKE) --jobs=2 --output-sync=target test-julia .venv/image.stamp
	+$(MAKE) test-python

test-julia: .venv/julia.stamp
	julia="$$($(BIN)/python -c 'from pybridge import julia; print(julia.find().require().executable)')"; \
	seq $(JOBS) | xargs -P $(JOBS) -I{} "$$julia" --startup-file=no julia/test/runtests.jl --part {}/$(JOBS)

test-python: .venv/image.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

demo: .venv/image.stamp
	$(BIN)/python examples/demo.py

# Some twenty minutes, most of which JAX spends on the unrolled loop of 1000; docs/benchmarks.md comes from it.
bench: .venv/image.stamp
	$(BIN)/pybridge bench --json benchmarks/results/$$(date +%F).json --docs

docs: .venv/python.stamp
	$(BIN)/mkdocs build --strict --quiet

lint: .venv/python.stamp
	$(BIN)/ruff check .

clean:
	rm -rf .venv site dist build demo-output .pytest_cache .ruff_cache

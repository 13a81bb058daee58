# The commands a newcomer needs. A fresh machine has Python 3.11 with pip, make and gcc; nothing else is assumed.
#   make run        install without torch into .venv, answer one sample question, open the prompt
#   make test       everything CI checks (.venv-dev with the CPU build of torch)
#   make lint       ruff, mypy --strict, import-linter
#   make soak       the property tests with their full counts
#   make bench      how fast answers are, as ratios to a reference of the same run
#   make accuracy   score all published cases, rewrite docs/accuracy.md and the table in README.md
#                   (TRACE=1 also traces the whole grid of configurations again, which takes long)

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= 2
SAMPLE ?= 13B fine-tune QLoRA
SOURCES := rules bench_agent bot scripts benchmarks tests

RUN := .venv/bin
DEV := .venv-dev/bin
PIP := -m pip install --quiet --disable-pip-version-check
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help run test lint unit soak bench accuracy clean

help:
	@sed -n '2,9p' Makefile | sed 's/^# \{0,1\}//'

.venv/installed: pyproject.toml
	test -x $(RUN)/python || $(PYTHON) -m venv .venv
	$(RUN)/python $(PIP) -e .
	$(RUN)/python -m compileall -q rules bench_agent bot
	touch $@

.venv-dev/installed: pyproject.toml constraints-test.txt
	test -x $(DEV)/python || $(PYTHON) -m venv .venv-dev
	$(DEV)/python $(PIP) -c constraints-test.txt -e '.[dev,llm]'
	touch $@

run: .venv/installed
	@$(RUN)/gpufit ask "$(SAMPLE)"
	@$(RUN)/gpufit chat

lint: .venv-dev/installed
	$(DEV)/ruff check $(SOURCES)
	$(DEV)/ruff format --check $(SOURCES)
	$(DEV)/mypy
	$(DEV)/lint-imports

unit: .venv-dev/installed
	$(ONE_THREAD) $(DEV)/python -m pytest -n $(JOBS)

test: lint unit

soak: .venv-dev/installed
	$(ONE_THREAD) GPUFIT_SOAK=1 $(DEV)/python -m pytest -n $(JOBS)

bench: .venv-dev/installed
	$(ONE_THREAD) $(DEV)/python -m benchmarks.bench_answers
	$(ONE_THREAD) $(DEV)/python -m benchmarks.bench_recommend

accuracy: .venv-dev/installed
ifdef TRACE
	$(ONE_THREAD) $(DEV)/python -m scripts.trace_grid
endif
	$(ONE_THREAD) $(DEV)/python -m scripts.accuracy_report

clean:
	rm -rf .venv .venv-dev build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

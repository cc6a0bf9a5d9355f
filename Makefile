.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0

.PHONY: install demo test check bench docs accept calibrate proto clean help

$(BIN)/advisor-cli: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[node,dev]'
	$(BIN)/python -m compileall -q advisor client
	@touch $@

$(VENV)/with-torch: | $(BIN)/advisor-cli
	$(BIN)/python -m pip install --quiet '$(TORCH)' numpy
	@touch $@

install: $(BIN)/advisor-cli ## make .venv with advisor-cli in it

demo: $(BIN)/advisor-cli $(VENV)/with-torch ## train a tiny GPT on the CPU with a planted fault, and diagnose it
	$(BIN)/advisor-cli demo

test: $(BIN)/advisor-cli $(VENV)/with-torch ## run all tests that need no GPU, and the checks
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest

check: $(BIN)/advisor-cli ## lint, formats, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.:client $(BIN)/lint-imports --no-cache

bench: $(BIN)/advisor-cli $(VENV)/with-torch ## measure speed and memory against peers, write docs/benchmarks.md
	$(BIN)/python bench/run.py

docs: $(BIN)/advisor-cli ## regenerate docs/rules/, the list of rules and the output in the README
	$(BIN)/python scripts/register_rules.py
	$(BIN)/python scripts/write_rule_pages.py
	$(BIN)/python scripts/write_readme_examples.py

accept: $(BIN)/advisor-cli ## rewrite the golden files of rendered reports; read the difference before you commit it
	ADVISOR_ACCEPT=1 $(BIN)/python -m pytest tests/render tests/corpus

calibrate: $(BIN)/advisor-cli ## make the table of confidences from the corpus anew
	$(BIN)/python scripts/calibrate.py

proto: ## stubs of the daemon's interface: there is none in this version
	@echo 'proto: this version has no daemon and no interface to generate stubs for' >&2; exit 2

clean: ## remove what the targets above made
	rm -rf $(VENV) dist build demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Everything runs in .venv, from the wheel that a user would get. Nothing outside this folder is changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
LOCK := requirements.lock
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)
PYTHON_SOURCES := pyproject.toml README.md $(shell find python -name '*.py' -o -name '*.pyi' -o -name py.typed -o -name '*.json' -o -name '*.j2' -o -name '*.css' -o -name '*.js')

.DEFAULT_GOAL := help
.PHONY: help demo build test test-rust test-python lint format docs bench fuzz wheel develop clean check-tools

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: build ## Build, install and run the main job on the lengths of the story
	@$(PIP) install -c $(LOCK) 'click' 'rich'
	@$(BIN)/lengthwise demo

build: $(VENV)/.built ## Build the release wheel and install it into .venv

test: test-rust test-python ## Build, install and run every test, Rust and Python

test-rust: check-tools
	cargo test --locked --package lengthwise-core

test-python: $(VENV)/.built $(VENV)/.tools
	$(BIN)/python -m pytest -n 2 --pyargs tests lengthwise

lint: $(VENV)/.built $(VENV)/.tools ## Format, lint and type checks, as CI runs them
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest lengthwise._core

format: $(VENV)/.tools ## Format the code and apply the safe fixes
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.built $(VENV)/.tools ## Build the site into docs/_build/html, warnings as errors
	$(BIN)/python -m sphinx -n -W --keep-going -q -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

bench: $(VENV)/.built $(VENV)/.tools ## Run the benchmarks: ours against twins and peers in the same run
	$(PIP) install -c $(LOCK) --group bench
	$(BIN)/python -m pytest benches --benchmark-enable --benchmark-only -p no:cacheprovider

fuzz: ## Search the core for broken promises, a minute a target; needs a nightly toolchain and `cargo install cargo-fuzz`
	cargo +nightly fuzz run plan -- -max_total_time=60
	cargo +nightly fuzz run boundaries -- -max_total_time=60
	cargo +nightly fuzz run pairs -- -max_total_time=60

wheel: $(VENV)/.built ## Install the wheel in a clean venv in another folder and run the tests there
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(PYTHON) -m venv "$$folder/venv" && cp -r tests examples pyproject.toml "$$folder" && cp -r dist "$$folder/dist" && \
	"$$folder/venv/bin/pip" install -q --upgrade 'pip>=25.1' && \
	"$$folder/venv/bin/pip" install -q -c $(LOCK) --group test dist/*.whl && \
	cd "$$folder" && venv/bin/python -m pytest -n 2 --pyargs tests lengthwise

develop: $(VENV)/.tools check-tools ## An editable install for people who change lengthwise
	$(BIN)/maturin develop --release

clean: ## Remove everything that the other targets made
	rm -rf $(VENV) dist target fuzz/target docs/_build

check-tools:
	@command -v cargo >/dev/null || { echo 'lengthwise is built with Rust: install a toolchain (1.88 or newer) from https://rustup.rs and run make again.' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo 'lengthwise needs Python 3.11 or newer: run make again with PYTHON=/path/to/python3.11.' >&2; exit 1; }

$(VENV)/.venv: | check-tools
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.built: $(RUST_SOURCES) $(PYTHON_SOURCES) $(LOCK) $(VENV)/.venv | check-tools
	@$(PIP) install -c $(LOCK) maturin
	@rm -rf dist
	@echo 'building the release wheel (about a minute the first time)'
	@$(BIN)/maturin build --release --locked --quiet --interpreter $(BIN)/python --out dist
	@$(PIP) install -c $(LOCK) dist/*.whl
	@$(PIP) install --force-reinstall --no-deps dist/*.whl
	@touch $@

$(VENV)/.tools: pyproject.toml $(LOCK) $(VENV)/.venv
	@echo 'installing what the tests and linters need (torch is large: this can take minutes the first time)'
	@$(PIP) install -c $(LOCK) --group dev
	@touch $@

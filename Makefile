# Everything a newcomer needs: `make quick` measures, `make test` checks. Both set up what is missing first.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := $(shell find crates catalogue -name '*.rs' -o -name '*.toml' 2>/dev/null) Cargo.toml Cargo.lock

# The requirements of an extra of pyproject.toml.
extra = $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"])')

AGENT  := build/spindle-agent

# Every target but the files with a variable or a folder in their names.
.PHONY: $(shell grep -oE '^[a-z][a-z-]*:' $(firstword $(MAKEFILE_LIST)) | tr -d :)

SECONDS ?= 60
CRATE ?= array
# Folders of tests that run side by side: they wait more than they compute.
WORKERS ?= 3
# `make test` draws the same cases each time; another seed draws others.
PROPTEST_SEED ?= 1

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

quick: $(VENV)/built ## build what is missing, then measure a test file here (about a minute)
	$(BIN)/spindle quick

agent: $(AGENT) ## spindle-agent, one static binary without Python, in build/ (docs/reference/agent.md)

$(AGENT): $(RUST) tools/build-agent
	@tools/build-agent

test: setup test-rust test-python ## all tests; as root they use loop devices and zram

test-rust:
	PROPTEST_RNG_SEED=$(PROPTEST_SEED) cargo test --workspace --quiet

test-python: $(VENV)/built $(VENV)/test-tools
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not alone'
	$(BIN)/python -m pytest -m alone

# Folders of tests that start few programs: all of `tests` takes hours under this measurement.
COVERED ?= $(addprefix tests/,library result formats report inspect doctor monitor campaigns)

coverage: build/bin/cargo-llvm-cov setup ## share of the lines that tests run: all of Rust's, of Python's those in COVERED
	rustup component add llvm-tools
	PROPTEST_RNG_SEED=$(PROPTEST_SEED) build/bin/cargo-llvm-cov llvm-cov --workspace --quiet --summary-only --ignore-run-fail | \
	  awk '/^TOTAL/ { print "Rust: " $$10 " of the lines" }'
	-$(BIN)/coverage run -m pytest --quiet $(COVERED)
	$(BIN)/coverage combine --quiet
	@echo "Python: $$($(BIN)/coverage report --format=total) % of the lines, by $(COVERED)"

lines: $(VENV)/bin/python ## lines of code by crate and room, without blank lines, comments and docstrings
	@$(BIN)/python tools/count_lines.py

review: setup ## the tests that try to break each promise (tests/promises.toml), and one line for each
	$(BIN)/python -m pytest --review --quiet

lint: $(VENV)/built $(VENV)/test-tools $(VENV)/lint-tools ## formatting, clippy, ruff, mypy over the package and tests, plain words
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check python tests benches examples
	$(BIN)/ruff format --check python tests benches examples
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest spindle._core --allowlist tools/stubtest-allowlist
	$(BIN)/python tools/plain_words.py

generate: $(VENV)/built $(VENV)/lint-tools ## types from the Rust types; pages of options and keys, man pages, completions
	$(BIN)/python tools/generate_types.py
	$(BIN)/python tools/generate_reference.py

docs: $(VENV)/built $(VENV)/docs-tools ## the documentation as a site, in build/docs; warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -b html -c docs -d build/doctrees docs build/docs
	@echo "build/docs/README.html"

questions: setup ## the experiments of docs/questions again: their charts, and the tables on their pages
	@for name in $$(cd docs/questions && ls *.md | grep -v README | sed 's/[.]md$$//'); do \
	  echo "$$name"; $(BIN)/python examples/questions/$$name.py --chart docs/images/questions/$$name.svg > /dev/null; done
	$(BIN)/python -m pytest --quiet --update-pages tests/docs/test_commands.py -k questions
	$(BIN)/python -m pytest --quiet tests/docs/test_questions.py

pages: setup ## today's outputs of the commands on the pages whose output is the same each time
	$(BIN)/python -m pytest --quiet --update-pages tests/docs/test_commands.py

format: $(VENV)/lint-tools ## put the code into shape
	cargo fmt --all
	$(BIN)/ruff check --fix python tests benches examples
	$(BIN)/ruff format python tests benches examples

lab: $(VENV)/built ## the kernel of `spindle lab`, once (about 7 minutes of CPU time); KERNEL=6.12 is another one
	@tools/system-packages lab $(KERNEL)
	$(BIN)/spindle lab build $(if $(KERNEL),--kernel $(KERNEL))

lab-defaults: $(VENV)/built ## attributes of 20 new arrays in the lab's kernel, beside those that the models have for them (needs `make lab`)
	$(BIN)/python benches/array_defaults.py

lab-grid: $(VENV)/built ## the simulator against the lab's kernel: machines and loads that run both ways (needs `make lab`; 4 CPU minutes): ARGS are passed on
	$(BIN)/spindle validate grid $(ARGS)

lab-grid-buffered: $(VENV)/built ## the same through the page cache, raw and in ext4 and XFS (needs `make lab`; 6 CPU minutes): ARGS are passed on
	$(BIN)/spindle validate grid --buffered $(ARGS)

lab-grid-bitmaps: $(VENV)/built ## writes to arrays with a write-intent bitmap and without one, both ways (needs `make lab`; 7 CPU minutes): ARGS are passed on
	$(BIN)/spindle validate grid --bitmaps $(ARGS)

lab-cases: $(VENV)/built ## all cases of the kinds of `kernel61`, measured in the lab: tables for `spindle validate kernel DIR` (needs `make lab`; 15 CPU minutes): ARGS are passed on
	$(BIN)/python benches/lab_cases.py $(or $(ARGS),target/lab-cases)

lab-deep: $(VENV)/built ## loads of more requests than the queues take, both ways (needs `make lab`; a minute)
	$(BIN)/python benches/deep_queues.py

lab-fsyncs: $(VENV)/built ## fsyncs on ext4 and XFS, both ways (needs `make lab`; two minutes)
	$(BIN)/python benches/fsyncs.py

lab-rebuild: $(VENV)/built ## rebuilds beside loads, the simulator against the lab's kernel (needs `make lab`; 15 CPU minutes): ARGS are passed on
	$(BIN)/spindle validate rebuild $(ARGS)

recipes: $(VENV)/built $(VENV)/test-tools $(VENV)/lint-tools ## every recipe of docs/contributing, applied to a copy (builds the core six times)
	RECIPES=all $(BIN)/python -m pytest tests/docs/test_recipes.py

bench: bench-engine bench-library bench-agreement bench-bonnie bench-fsync bench-verify bench-sim bench-stats bench-store bench-report bench-endurance bench-serve ## all benches (about 40 minutes; on a quiet machine)
	cargo bench -p spindle-workload -p spindle-measure -p spindle-array
	cargo bench -p spindle-engine --bench names

bench-engine: setup ## the generator against bare loops and fio: ARGS are passed on
	cargo bench -p spindle-engine --bench engine -- $(ARGS)

bench-agreement: setup $(VENV)/built ## Spindle and fio on a throttled device must tell the same (root): ARGS are passed on
	$(BIN)/python benches/agreement.py $(ARGS)

bench-fsync: setup $(VENV)/built ## latency of fdatasync and O_DSYNC beside fio's on ext4, XFS and btrfs (root): ARGS are passed on
	$(BIN)/python benches/fsync_latency.py $(ARGS)

bench-bonnie: setup $(VENV)/built ## Spindle's bonnie and bonnie++ on the same throttled file systems (root): ARGS are passed on
	$(BIN)/python benches/bonnie.py $(ARGS)

fuzz-fio: setup $(VENV)/built ## random job files by fio and by Spindle, compared request by request (root): ARGS are passed on
	$(BIN)/python benches/fuzz_fio.py $(ARGS)

bench-lab: $(VENV)/built ## requests per second of CPU time in the lab, and what a boot costs (needs `make lab`): ARGS are passed on
	$(BIN)/python benches/lab.py $(ARGS)

lab-exact: $(VENV)/built ## rates of drives of fixed latency in the lab, and service times against the drive models alone (needs `make lab`): ARGS are passed on
	$(BIN)/python benches/lab_exact.py $(ARGS)

lab-maps: $(VENV)/built ## address maps of 200 random arrays, read off the lab's kernel, against the models (needs `make lab`): ARGS, `--lists DIR` makes those of lists again
	$(BIN)/python benches/lab_maps.py $(ARGS)

lab-cuts: $(VENV)/built ## 216 power cuts in the lab: drives, file systems, md with and without bitmap, journal and PPL (needs `make lab`): ARGS are passed on
	$(BIN)/python benches/lab_cuts.py $(ARGS)

lab-equal: $(VENV)/built ## runs of the lab must be equal: arrays, file systems and loads (needs `make lab`): ARGS are passed on
	$(BIN)/python benches/lab_equal.py $(ARGS)

lab-kills: $(VENV)/built ## kill Spindle at 40 random moments while labs run; nothing may be left (needs `make lab`): ARGS are passed on
	$(BIN)/python benches/lab_kills.py $(ARGS)

bench-sim: ## simulated requests a second on one core, against the goals
	cargo bench -p spindle-sim --bench sim -- $(ARGS)

bench-tune: $(VENV)/built $(VENV)/bench-tools ## settings that a search recommends against the known best, beside random search, TPE and SMAC: ARGS are passed on
	$(BIN)/python benches/tune.py $(ARGS)

bench-tune-kills: setup ## searches killed at 50 random points: settings back, no trial twice, the same decision (needs root): ARGS are passed on
	$(BIN)/python benches/tune_kills.py $(ARGS)

bench-tune-blkio: setup ## a search on a loop device whose blkio limit stands for a knob with a known best (needs root): ARGS are passed on
	$(BIN)/python benches/tune_blkio.py $(ARGS)

bench-fleet: setup $(VENV)/built $(AGENT) ## kills of agent, ssh and `spindle fleet` at 200 random points (root): ARGS are passed on
	$(BIN)/python benches/fleet.py $(ARGS)

bench-reliability: $(VENV)/built ## reliability of arrays: closed forms, chain and Monte Carlo against each other (2 CPU minutes): ARGS are passed on
	$(BIN)/python benches/reliability.py $(ARGS)

bench-design: $(VENV)/built ## the search of `spindle design` against every cheaper design of a space of 23 880, its formulas against simulations, their speed (`truth` takes 7 minutes): ARGS are passed on
	$(BIN)/python benches/design.py $(ARGS)

bench-assess: $(VENV)/built ## answers and margins of `assess` on modelled machines of known ability: ARGS are passed on
	$(BIN)/python benches/assess.py $(ARGS)

bench-cluster: $(VENV)/built $(VENV)/test-tools ## worker processes: speed-up, overhead of a chunk, 64 sleeping threads, kills at 30 random points (20 minutes): ARGS are passed on
	$(BIN)/python benches/cluster.py $(ARGS)

bench-library: $(VENV)/built ## time of `import spindle`, `spindle --help`, and of `spindle.run` beyond the core: ARGS are passed on
	$(BIN)/python benches/library.py $(ARGS)

bench-stats: $(VENV)/built ## how often alike things are told apart, and planted differences found: ARGS are passed on
	$(BIN)/python benches/stats.py $(ARGS)

bench-steady: $(VENV)/built ## how often `steady` warns of a level kept, and finds one that was not: ARGS are passed on
	$(BIN)/python benches/steady.py $(ARGS)

bench-endurance: $(VENV)/built ## ten minutes at full speed must not need more memory than one: ARGS are passed on
	$(BIN)/python benches/endurance.py $(ARGS)

bench-report: $(VENV)/built $(VENV)/test-tools ## a report of 100 runs: seconds and bytes
	$(BIN)/python benches/report.py $(ARGS)

bench-verify: $(VENV)/built ## what verification costs on a loop device, zram and in the page cache (root): ARGS are passed on
	$(BIN)/python benches/verify.py $(ARGS)

bench-serve: setup $(VENV)/built ## a served drive in real time against its model, through FUSE and a loop device (root): ARGS are passed on
	$(BIN)/python benches/drive_serve.py $(ARGS)

bench-store: $(VENV)/built ## a store of 10 000 runs: what it takes to store, list and compare: ARGS are passed on
	$(BIN)/python benches/store.py $(ARGS)

knob-effects: setup ## side effects of knobs on this kernel, into docs/reference/knobs.md (root, on devices of its own; some minutes)
	$(BIN)/python benches/knob_effects.py --write

deny: build/bin/cargo-deny ## advisories, licences and sources of the crates that are used (deny.toml)
	build/bin/cargo-deny check bans licenses sources
	@build/bin/cargo-deny fetch db || { echo "deny: advisories were not checked: their database could not be fetched" >&2; exit 1; }
	build/bin/cargo-deny --offline check advisories

SEEDS_workload := catalogue/presets
SEEDS_machine := catalogue/machines
SEEDS_sheet := catalogue/drives
FUZZED := $(notdir $(basename $(wildcard fuzz/fuzz_targets/*.rs)))

fuzz: build/bin/cargo-fuzz $(FUZZED:%=fuzz-%) ## every parser of the crates with random text (fuzz/, nightly toolchain): SECONDS each

fuzz-%: build/bin/cargo-fuzz
	mkdir -p fuzz/corpus/$*
	RUSTUP_TOOLCHAIN=nightly build/bin/cargo-fuzz run $* fuzz/corpus/$* $(SEEDS_$*) -- -max_total_time=$(SECONDS) -max_len=4096 \
	  -verbosity=0 -print_funcs=0

mutants: build/bin/cargo-mutants ## changes of the code that no test of its crate notices: CRATE
	build/bin/cargo-mutants mutants --package spindle-$(CRATE) --test-workspace=false --output target/mutants $(ARGS)

build/bin/cargo-%:
	cargo install --quiet --locked --root build cargo-$*

release: ## source package and wheels for glibc and musl in dist/, each looked at and tried
	.ci/release

setup: $(VENV)/built $(VENV)/test-tools ## packages, virtual environment, build
	@tools/system-packages test

clean: ## remove what was built
	rm -rf target build dist $(VENV)

$(VENV)/bin/python:
	@tools/system-packages build
	@echo "== private Python environment in $(VENV)"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "spindle: Python 3.11 or later is needed; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/built: pyproject.toml $(RUST) $(VENV)/bin/python
	@echo "== building Spindle (about a minute)"
	$(BIN)/pip install --quiet 'maturin>=1.9,<2'
	$(BIN)/maturin develop --release --quiet
	@touch $@

$(VENV)/test-tools: pyproject.toml $(VENV)/bin/python
	$(BIN)/pip install --quiet $(call extra,postgres) $(call extra,parquet) $(call extra,cluster) $(call extra,test)
	@touch $@

$(VENV)/docs-tools: pyproject.toml $(VENV)/bin/python
	$(BIN)/pip install --quiet $(call extra,docs)
	@touch $@

$(VENV)/bench-tools: pyproject.toml $(VENV)/bin/python
	$(BIN)/pip install --quiet $(call extra,bench)
	@touch $@

$(VENV)/lint-tools: pyproject.toml $(VENV)/bin/python
	$(BIN)/pip install --quiet $(call extra,lint)
	@touch $@

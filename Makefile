# The commands that CI runs. Everything installs into .venv, at the versions of constraints.txt; Python 3.10 gets fairseq
# 0.12.2, which needs those of constraints-3.10.txt.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CONSTRAINTS := constraints$(shell $(PYTHON) -c 'import sys; print("-3.10" if sys.version_info < (3, 11) else "")').txt
VENV_MARK := .made-by-make
DEMO_MARK := .made-by-demo.sh

.PHONY: install demo test coverage lint docs bench compat clean
# What the tests and checks need; the demo needs less
install: $(VENV)/.installed-test
# torchaudio comes with fairseq, which needs it for speech only.  PyPI has a CUDA build of it; beside a CPU build of
# torch that cannot be imported, and Transformers fails where it can be found.
INSTALL = $(BIN)/pip install --quiet --constraint $(CONSTRAINTS)
HAS_FAIRSEQ = $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("fairseq") is None)'
WITHOUT_BROKEN_AUDIO = $(BIN)/python -c 'import torchaudio' 2>/dev/null || $(BIN)/pip uninstall --quiet --yes torchaudio

$(VENV)/.installed: setup.py $(CONSTRAINTS)
	test -e "$(VENV)" || { mkdir -p "$(VENV)" && touch "$(VENV)/$(VENV_MARK)"; }
	@echo "== installing into $(VENV): torch, fairseq and what they need; gigabytes, and pip is silent for 1 to 10 minutes"
	test -e "$(VENV)/pyvenv.cfg" || $(PYTHON) -m venv "$(VENV)"
	# torch first; TORCH_INDEX names the index of a CPU build, where pip would take one with gigabytes of CUDA packages
	$(INSTALL) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
	$(INSTALL) --editable '.[fairseq]'
	# where there is no wheel of a fairseq: the line that norm-align names
	$(HAS_FAIRSEQ) || PIP_CONSTRAINT=$(CONSTRAINTS) PATH="$(CURDIR)/$(BIN):$$PATH" \
		bash -c "$$($(BIN)/python -m fairseq_norm_plugin.environment)"
	$(WITHOUT_BROKEN_AUDIO)
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "== installing what tests, checks and docs need"
	$(INSTALL) --editable '.[test]'
	$(WITHOUT_BROKEN_AUDIO)
	touch $@

# An active environment that has the package and fairseq serves the demo as it is
READY := $(and $(VIRTUAL_ENV),$(wildcard $(VIRTUAL_ENV)/bin/norm-align),$(wildcard $(VIRTUAL_ENV)/bin/fairseq-generate))

demo: $(if $(READY),,$(VENV)/.installed)
	@echo "== the demo: every step on 60 sentence pairs with the bundled models, about 2 minutes on two cores"
	PATH="$(if $(READY),$(VIRTUAL_ENV)/bin,$(CURDIR)/$(BIN)):$$PATH" bash scripts/demo.sh

# A file is one worker's; files in their order, which ends with many small ones, so that neither worker waits long
DIST := --dist loadfile --no-loadscope-reorder

# Without compiled modules each process compiles the packages and tests again
test coverage: export PYTHONDONTWRITEBYTECODE :=

test: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 $(DIST)

# Branch coverage of both packages, commands that tests start included; slower than test by about a half
coverage: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 $(DIST) --cov --cov-report=term --cov-report=xml:coverage.xml

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The docs site, out/site/index.html; a dead link or a warning is an error
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: install
	PATH="$(CURDIR)/$(BIN):$$PATH" OUT=out/bench bash scripts/demo.sh >/dev/null
	$(BIN)/python scripts/bench.py

# Each supported fairseq in an environment of its own (scripts/compat.sh): gigabytes, and an hour
compat:
	bash scripts/compat.sh

# Only what was made here: VENV may come from the environment, and out/ may hold other work.
clean:
	bash scripts/clean.sh "$(VENV)" $(VENV_MARK) out/demo $(DEMO_MARK) out/bench $(DEMO_MARK)

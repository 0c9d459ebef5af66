# All commands except make gpu create their own virtual environment. They need Python >= 3.11, pip, git and make.
#   make demo   search for elimination orders, and check the Jacobian of the best one against JAX
#   make test   check style, types and all tests
#   make slow   run long proofs, long training runs and the check of the wheel
#   make gpu    run tests, random programs and benchmarks on an NVIDIA GPU, with a Python that has JAX for it:
#               make gpu GPU_PYTHON=python3; writes benchmarks/measured/latest.json
#   make docs   build the documentation as a web site in site/
#   make pages  run the pages of the documentation, and insert what they print and draw

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# A version of JAX other than the newest: make test JAX=0.11.*
JAX    ?=
PIN    := $(if $(JAX),'jax==$(JAX)')
# The first version that reads dependency groups.
PIP    := pip>=25.1
# The site is built in a separate environment.
SITE_VENV ?= .venv-docs

GPU_PYTHON ?= $(BIN)/python

.PHONY: demo test slow lint bench gpu docs pages clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/python -m pytest -q -n auto -m "not slow"

slow: $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto -m slow

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test
	$(BIN)/python benchmarks/command_line.py
	$(BIN)/python benchmarks/light.py
	$(BIN)/python benchmarks/primitive_harness.py
	$(BIN)/python benchmarks/native.py

gpu: export PYTHONPATH := src:benchmarks:$(PYTHONPATH)
gpu:
	GRAPHAX_TEST_PLATFORM=cuda,cpu XLA_PYTHON_CLIENT_PREALLOCATE=false $(GPU_PYTHON) -m pytest -q tests/graphax/native/test_gpu.py
	$(GPU_PYTHON) benchmarks/gpu_programs.py
	$(GPU_PYTHON) benchmarks/gpu.py --output benchmarks/measured/latest.json

docs: $(SITE_VENV)/.site
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict --quiet
	@echo "The site is in site/index.html."

pages: $(VENV)/.test
	$(BIN)/python docs/api_reference.py
	$(BIN)/python benchmarks/kernel_coverage.py --write
	$(BIN)/python docs/charts.py
	$(BIN)/python docs/notebook.py
	$(BIN)/python docs/pages.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "graphax needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[search]' $(PIN)
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade '$(PIP)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev -e '.[solvers,rl,plot]' $(PIN)
	@touch $@ $(VENV)/.demo

$(SITE_VENV)/.site: docs/requirements.txt
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) $(SITE_VENV) site

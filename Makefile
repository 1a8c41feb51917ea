# Each target sets up what it needs in .venv. DEVICE=wgpu runs on a GPU, or on Vulkan's software driver.
PYTHON ?= python3
DEVICE ?= cpu
export DEVICE
# Vulkan drivers print a warning without it.
export XDG_RUNTIME_DIR ?= /tmp
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: help run test lint ops parity bench examples clean
.NOTPARALLEL:

help:  ## say what there is (the default)
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/has-examples  ## train a GRU on handwritten digits [DEVICE=wgpu]
	$(PY) examples/01_digits_gru.py

# Compiled files spare each process that the tests start half a second. Two processes share the cores: BLAS takes one.
test: $(VENV)/has-test  ## run all tests on NumPy and on Vulkan [ARGS="tests/... -k ..."]
	.ci/vulkan $(PY)
	OPENBLAS_NUM_THREADS=1 env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest -n 2 --dist loadgroup $(ARGS)

lint: $(VENV)/has-dev  ## check style and types
	$(PY) -m ruff check
	$(PY) -m mypy

ops: $(VENV)/has-examples  ## print every op: its kernels and its gradients on each device
	$(PY) -c 'import autograd; print(autograd.op.coverage())'

parity: $(VENV)/has-parity  ## score both devices against the databases that PyTorch tests itself with [ARGS="--samples 3"]
	.ci/vulkan $(PY)
	printf '%s\n' "parity wgpu" "parity_modules wgpu" "parity cpu" "parity_modules cpu" | \
	    OPENBLAS_NUM_THREADS=1 xargs -P 2 -L 1 sh -c '$(PY) tests/$$0.py $(ARGS) $$1'

# Some machines set these two for older BLAS builds; they slow a current NumPy down.
bench: $(VENV)/has-bench  ## measure, beside PyTorch and other engines [DEVICE=wgpu] [ARGS="GRU encoder"]
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(PY) tests/benchmarks/run.py $(ARGS)

examples: $(VENV)/has-test  ## run every example and notebook [DEVICE=wgpu]
	set -e; for each in examples/*.py; do $(PY) $$each; done
	$(PY) -m jupyter execute examples/*.ipynb

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist out *.egg-info .*_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# One empty file an extra: older than setup.cfg, or not there, means install (again).
$(VENV)/has-%: setup.cfg
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

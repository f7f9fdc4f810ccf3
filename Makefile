# The commands of this repository. `make demo` and `make test` set up what is missing first; see README.md.
# Every path is relative: the folder's own name may hold spaces.
SHELL := /bin/bash
ARGS ?=

.PHONY: help demo test build bench fuzz format lint clean

help:
	@echo 'make demo    set up what is missing, then the main job: a run with faults next to one without (ARGS="--seed 7")'
	@echo 'make test    set up what is missing, then all tests'
	@echo 'make build   build/bin/holdfast and the Python environment build/venv'
	@echo 'make bench   recovery times next to the launchers of today (ARGS="--full")'
	@echo 'make fuzz    every fuzzer for SECONDS (3600) each'
	@echo 'make format  format the C++ sources'
	@echo 'make lint    format check, clang-tidy and mypy alone'
	@echo 'make clean   remove what was built, keep the Python environment'

build:
	@tools/setup run
	@tools/build

demo: build
	@build/bin/holdfast demo $(ARGS)

test:
	@tools/test

bench: build
	@bench/recovery $(ARGS)

fuzz:
	@tools/setup run
	@tools/fuzz --seconds $(or $(SECONDS),3600)

format:
	@tools/setup test
	@tools/format

lint:
	@tools/setup test
	@tools/build
	@tools/format --check
	@tools/tidy
	@tools/types

clean:
	rm -rf build/dev build/release build/asan build/tsan build/fuzz build/bin build/lint

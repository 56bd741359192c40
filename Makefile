# Everything is built and run inside .venv; `make help` lists the commands.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -q --disable-pip-version-check
SOURCES := pyproject.toml CMakeLists.txt $(shell find native src/powersketch \
    -type f -not -path '*/__pycache__/*' -not -name '.*' 2>/dev/null)

NATIVE_FILES := $(wildcard native/*.[ch]pp native/*/*.[ch]pp)
NATIVE_HEADERS := $(filter %.hpp,$(NATIVE_FILES))
NATIVE_FLAGS := -std=c++17 -ffp-contract=off -fno-math-errno -fno-strict-aliasing -Wall -Wextra -DPOWERSKETCH_X86
NATIVE_TEST := build/native_tests/same_bits
NATIVE_TEST_PARTS := tests/same_bits.o isa_baseline.o isa_avx2.o isa_avx512.o
# Not optimised: that would take four times as long, and the sanitizers would see less.
NATIVE_TEST_FLAGS := $(NATIVE_FLAGS) -O0 -g1 -fPIC -fsanitize=address,undefined \
    -fno-sanitize-recover=all -Wno-psabi

NANOBIND = $(shell $(BIN)/python -c 'import nanobind, os; print(os.path.dirname(nanobind.__file__))')
PYTHON_FLAGS = -I$(NANOBIND)/include -I$(NANOBIND)/ext/robin_map/include -fvisibility=hidden \
    -I$(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')

# The module as Python imports it, with the sanitizers; it takes the place of the installed one.
SANITIZED := build/sanitized/_native.so
BINDINGS := $(patsubst native/%.cpp,build/native_tests/%.o,$(wildcard native/bindings/*.cpp))
SANITIZED_PARTS := $(BINDINGS) $(addprefix build/native_tests/,dispatch.o thread_pool.o \
    isa_baseline.o isa_avx2.o isa_avx512.o) build/sanitized/nanobind.o
SANITIZED_TESTS := tests/routines/test_bad_arguments.py tests/routines/test_compiled.py \
    tests/validation/test_validation.py
# Long rows and whole estimators would take minutes more, and no other line of C++.
SANITIZED_CHOICE := not large_rows and not entry and not entries

# Threads of BLAS wait by spinning, at the expense of the tests beside them.
ONE_BLAS_THREAD := OPENBLAS_NUM_THREADS=1

# The linters and the compiler can work at the same time.
MAKEFLAGS += --jobs=2
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint sanitize clang hostile bench readme docs wheels test-wheels release clean

help:
	@echo "make demo    build, then show features beside scikit-learn's, and a model beside others"
	@echo "make test    build, then run the linters, the tests and the documentation's examples"
	@echo "make lint    run the linters, the type checker and the layer contract only"
	@echo "make sanitize  run the tests of the compiled module under the sanitizers"
	@echo "make clang   compile the routines with Clang and compare the bits of all instruction sets"
	@echo "make hostile attack every estimator and every file reader, and count which promises hold"
	@echo "make bench   build, then measure against other libraries and the machine limits (PART=... for a part)"
	@echo "make docs    build the documentation site with its gallery into build/docs, and check its links"
	@echo "make readme  write the measured figures into README.md and docs"
	@echo "make wheels  build the sdist and the wheels for Linux and macOS into dist/"
	@echo "make test-wheels  install these wheels into clean environments and test them, AArch64 under qemu"
	@echo "make release check what a release needs: tag, changelog, wheels, documentation, tests; publishes nothing"
	@echo "make clean   remove everything that make created, the environment included"
	@echo "PYTHON=...   the interpreter that the environment is made from (default: python3)"

demo: $(VENV)/.installed
	$(BIN)/powersketch demo

test: lint $(NATIVE_TEST) sanitize
	$(NATIVE_TEST)
	$(ONE_BLAS_THREAD) SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -n 2 tests
	$(BIN)/python -m pytest -q --doctest-modules --pyargs powersketch
	$(BIN)/python -m pytest -q --doctest-glob='*.md' README.md docs

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(NATIVE_FILES)
	$(BIN)/python -m benchmarks.readme --check

# Without -mavx flags the wide vectors are lowered to what every machine has.
build/native_tests/%.o: native/%.cpp $(NATIVE_HEADERS)
	@mkdir -p $(@D)
	$(CXX) $(NATIVE_TEST_FLAGS) -c $< -o $@

$(NATIVE_TEST): $(addprefix build/native_tests/,$(NATIVE_TEST_PARTS))
	$(CXX) $(NATIVE_TEST_FLAGS) $^ -o $@

# Clang from the package ziglang, with its own warnings, as no other compiler is at hand everywhere.
CLANG = $(BIN)/python -m ziglang c++ -Werror -fno-sanitize=all

CLANG_TEST := $(addprefix build/clang/,$(NATIVE_TEST_PARTS))
CLANG_BINDINGS := $(patsubst native/%.cpp,build/clang/%.o,$(wildcard native/bindings/*.cpp))

# The module's other files are only compiled, for the warnings.
clang: $(CLANG_TEST) $(CLANG_BINDINGS) build/clang/dispatch.o build/clang/thread_pool.o
	$(CLANG) $(CLANG_TEST) -o build/clang/same_bits
	build/clang/same_bits

$(CLANG_BINDINGS): CLANG += $(subst -I,-isystem ,$(PYTHON_FLAGS))
$(CLANG_BINDINGS): | $(VENV)/.build-tools

build/clang/%.o: native/%.cpp $(NATIVE_HEADERS) | $(VENV)/.clang
	@mkdir -p $(@D)
	$(CLANG) $(NATIVE_FLAGS) -O1 -c $< -o $@

# Python itself has no sanitizers, so that their library has to be loaded before it.
sanitize: $(VENV)/.installed $(SANITIZED)
	LD_PRELOAD="$(foreach library,libasan.so libstdc++.so.6,$(shell $(CXX) -print-file-name=$(library)))" \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 $(ONE_BLAS_THREAD) \
	    PYTHONPATH=tests/routines/sanitized POWERSKETCH_SANITIZED=$(SANITIZED) \
	    $(BIN)/python -m pytest -q -s -k '$(SANITIZED_CHOICE)' $(SANITIZED_TESTS)

$(BINDINGS): NATIVE_TEST_FLAGS += $(PYTHON_FLAGS)
$(BINDINGS): | $(VENV)/.build-tools

build/sanitized/nanobind.o: $(VENV)/.build-tools
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O0 -fPIC -fno-strict-aliasing $(PYTHON_FLAGS) -c $(NANOBIND)/src/nb_combined.cpp -o $@

$(SANITIZED): $(SANITIZED_PARTS)
	$(CXX) -shared -fsanitize=address,undefined -pthread $^ -o $@

# About six minutes on two processors; each failure prints the command that repeats it.
hostile: $(VENV)/.installed
	$(ONE_BLAS_THREAD) $(BIN)/python -m tests.hostile --count 20000 --jobs 2
	$(BIN)/python -m tests.hostile.fuzz_readers --count 150000
	$(ONE_BLAS_THREAD) $(BIN)/python -m tests.hostile.fuzz_models --count 100000

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(PART)

readme: $(VENV)/.installed
	$(BIN)/python -m benchmarks.readme

# The reader of a warning cannot repair it, so that warnings are errors. Nothing is fetched.
docs: $(VENV)/.docs
	rm -rf build/docs  # pages that are no more
	$(ONE_BLAS_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	$(BIN)/python -m docs.extensions.check_site build/docs

# All systems, from this machine; see tools/build_wheels.py.
wheels: $(VENV)/.wheels
	$(BIN)/python -m tools.build_wheels

# The wheels as they are in dist/, in environments of their own; CHECK=... for a part.
test-wheels: $(VENV)/.wheels
	$(BIN)/python -m tools.check_wheels $(CHECK)

# A dry run: it checks everything and publishes nothing.
release: $(VENV)/.wheels
	$(BIN)/python -m tools.release

clean:
	rm -rf $(VENV) build dist docs/_static/drawn docs/api docs/measurements.md docs/gallery docs/project docs/theory/references.md .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -type d -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found: install Python 3.11 or newer, or run make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is $$($(PYTHON) --version 2>&1), Python 3.11 or newer is needed: run make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "error: $(PYTHON) cannot create environments: install its venv module (Debian: package python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || { echo "error: $(PYTHON) has no C headers: install them (Debian: package python3-dev)" >&2; exit 1; }
	@command -v $(CXX) >/dev/null || command -v c++ >/dev/null || command -v clang++ >/dev/null || { echo "error: no C++ compiler found: install g++ (Debian: package g++)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Without build isolation the build directory is kept between builds, so only changed files compile.
$(VENV)/.build-tools: $(VENV)/.created
	$(PIP) install 'scikit-build-core>=0.10' 'nanobind>=2.0' cmake ninja
	@touch $@

# An editable install maps files when it is made, hence the dependence on every source file.
$(VENV)/.installed: $(VENV)/.build-tools $(SOURCES)
	$(PIP) install --no-build-isolation -e '.[test]'
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(PIP) install --no-build-isolation -e '.[bench]'
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(PIP) install --no-build-isolation -e '.[docs]'
	@touch $@

$(VENV)/.wheels: $(VENV)/.installed
	$(PIP) install --no-build-isolation -e '.[wheels]'
	@touch $@

$(VENV)/.clang: $(VENV)/.created
	$(PIP) install ziglang
	@touch $@

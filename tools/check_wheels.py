"""Installs the wheels of dist/ where users would, and tests them: `python -m tools.check_wheels`.

Every check runs on a copy of the tests, beside which there is no source: what is tested is what was
installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tools.commands import (
    BUILD,
    DIST,
    OLDEST_PYTHON,
    ROOT,
    STABLE_PYTHON,
    CommandError,
    find_python,
    install,
    new_environment,
    required_python,
    run,
    say,
)
from tools.debian_python import DebianPython

TESTS = BUILD / "tests" / str(os.getpid())  # of this run: others may be under way
# What the compiled module does, what estimators promise, and the solvers on top of them.
CORE = (
    "tests/test_random_streams.py",
    "tests/test_package.py",
    "tests/routines",
    "tests/sketches",
    "tests/powers",
    "tests/validation",
    "tests/feature_maps/test_determinism.py",
    "tests/ecosystem/test_array_libraries.py",
    "tests/feature_maps/test_scikit_learn_contract.py",
    "tests/kernel_ridge/test_scikit_learn_contract.py",
    "tests/kernel_systems/test_solve.py",
)
# Tests that start other processes by themselves.
STARTING_OTHERS = ("tests/test_package.py", "tests/routines/test_environment.py")
# Under emulation, where all takes ten times as long: golden values, models stored on x86-64, the
# whole contract of maps, and compiled routines beside their specification. What follows from equal
# bits is not repeated.
EMULATED = (
    "tests/test_random_streams.py",
    "tests/feature_maps/test_determinism.py::TestSeeds::test_fixed_numbers",
    "tests/feature_maps/test_determinism.py::TestSeeds::test_fixed_numbers_of_other_kernels",
    "tests/storage/test_models.py::test_files_of_earlier_versions_are_read",
    "tests/feature_maps/test_scikit_learn_contract.py",
    "tests/routines/test_compiled.py",
)
TEST_TOOLS = (
    "array-api-compat",  # scikit-learn 1.6 and 1.7 do not bring it along
    "array-api-strict",
    "hypothesis",
    "pandas",
    "polars",
    "pytest",
    "pytest-xdist",
)
NEWER_PYTHONS = ("3.12", "3.13")
TORCH = "torch==2.13.0"
# From what will be Debian's next release: nothing older has it.
NEWEST_PYTHON = DebianPython("3.14", "forky", "amd64", "x86_64")
EMULATED_PYTHONS = (
    DebianPython("3.11", "bookworm", "arm64", "aarch64"),
    DebianPython("3.13", "trixie", "arm64", "aarch64"),
)
# The first is as plain as they come; the last has all that there is, longer vectors, too.
OTHER_PROCESSORS = ("cortex-a53", "max,pauth-impdef=on")
_QUIET = {"OPENBLAS_NUM_THREADS": "1", "SCIPY_ARRAY_API": "1"}


def main() -> None:
    """Run the checks that are asked for, all of them by default, whether or not one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="*", choices=[[], *CHECKS], help="default: all")
    chosen = parser.parse_args().checks or list(CHECKS)
    _copy_tests()
    try:
        failing = [name for name in chosen if not _passes(name)]
    finally:
        shutil.rmtree(TESTS)
    if failing:
        raise CommandError(f"failing checks: {', '.join(failing)}")


def _passes(name: str) -> bool:
    """Run a check, and say why it does not pass: some take long, and the others are worth it."""
    say(f"== {name}")
    try:
        CHECKS[name]()
    except CommandError as error:
        say(f"error: {error}")
        return False
    return True


def check_without_compiler() -> None:
    """Install with nothing but pip in PATH, then run README's first example."""
    python = new_environment("without-compiler", required_python(OLDEST_PYTHON))
    example = python.parent / "first_example.md"
    example.write_text(_first_example((ROOT / "README.md").read_text()))
    environment = {"PATH": python.parent}
    pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run([python, *pip, wheel_for(OLDEST_PYTHON, "x86_64")], environment=environment)
    run([python, "-m", "doctest", example], environment=environment, folder=python.parent)


def check_sdist() -> None:
    """Build the sdist in an environment of its own by the machine's compiler, and use it."""
    python = new_environment("sdist", required_python(OLDEST_PYTHON))
    (sdist,) = DIST.glob("*.tar.gz")
    install(python, sdist, *TEST_TOOLS)
    _compare_bits("the sdist's build", _bits(python))


def check_oldest() -> None:
    """Run the core with the oldest dependencies that are allowed, on the oldest Python."""
    python = new_environment("oldest", required_python(OLDEST_PYTHON))
    install(python, wheel_for(OLDEST_PYTHON, "x86_64"), *oldest_dependencies(), *TEST_TOOLS)
    _run_core(python)


def check_newest() -> None:
    """Run the core with the newest dependencies, on every Python that is at hand."""
    for version in (OLDEST_PYTHON, *NEWER_PYTHONS):
        found = find_python(version)
        if found is None:
            say(f"Python {version}: not found here, not run")
            continue
        python = new_environment(f"newest-{version}", found)
        install(python, wheel_for(version, "x86_64"), *TEST_TOOLS)
        say(f"Python {version}")
        _run_core(python)


def check_next() -> None:
    """Run what runs in one process of the core, on a Python that few have yet."""
    _check_unpacked(NEWEST_PYTHON, CORE)


def check_torch() -> None:
    """Run the tests of array libraries with torch beside the strict one."""
    python = new_environment("torch", required_python(OLDEST_PYTHON))
    install(python, wheel_for(OLDEST_PYTHON, "x86_64"), TORCH, *TEST_TOOLS)
    command = [python, "-m", "pytest", "-q", "tests/ecosystem/test_array_libraries.py"]
    run(command, environment={**_QUIET, "POWERSKETCH_TEST_TORCH": "1"}, folder=TESTS, show=True)


def check_aarch64() -> None:
    """Compare the bits of all maps with those of x86-64, and run the tests that are about them."""
    for python in EMULATED_PYTHONS:
        _check_unpacked(python, EMULATED)
    for processor in OTHER_PROCESSORS:
        _compare_unpacked(replace(EMULATED_PYTHONS[0], processor=processor))


CHECKS: dict[str, Callable[[], None]] = {
    "without-compiler": check_without_compiler,
    "sdist": check_sdist,
    "oldest": check_oldest,
    "newest": check_newest,
    "next": check_next,
    "torch": check_torch,
    "aarch64": check_aarch64,
}
_BITS = ("-m", "tests.feature_maps.feature_bits", "--any-processor")


def wheel_for(version: str, machine: str) -> Path:
    """Return the Linux wheel that pip would choose."""
    tag = "cp311-cp311" if version == OLDEST_PYTHON else f"cp{STABLE_PYTHON.replace('.', '')}-abi3"
    found = list(DIST.glob(f"*-{tag}-manylinux*_{machine}.whl"))
    if len(found) != 1:
        raise CommandError(
            f"dist/ has {len(found)} wheels {tag} for {machine}: run make wheels first"
        )
    return found[0]


def oldest_dependencies() -> list[str]:
    """Return every dependency at the lowest version that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [f"{requirement.replace('>=', '==')}.*" for requirement in project["dependencies"]]


def _copy_tests() -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests", TESTS / "tests", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", TESTS)


def _run_core(python: Path) -> None:
    listed = run([python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"])
    versions = [line for line in listed.split() if line.startswith(("numpy=", "sci"))]
    _compare_bits(", ".join(versions), _bits(python))
    run(
        [python, "-m", "pytest", "-q", "-n", "2", *CORE],
        environment=_QUIET,
        folder=TESTS,
        show=True,
    )


def _check_unpacked(python: DebianPython, tests: Sequence[str]) -> None:
    """Compare bits and run tests on a Python that is only unpacked: it cannot start another one."""
    python.prepare()
    python.install(wheel_for(python.version, python.machine), *TEST_TOOLS)
    _compare_unpacked(python)
    options = ["-p", "no:xdist", "-k", "not other_processes"]
    options += [f"--deselect={path}" for path in STARTING_OTHERS]
    python.run(["-m", "pytest", "-q", *options, *tests], TESTS, show=True)


def _compare_unpacked(python: DebianPython) -> None:
    _compare_bits(str(python), json.loads(python.run([*_BITS], TESTS)))


def _bits(python: Path) -> dict[str, str]:
    bits: dict[str, str] = json.loads(run([python, *_BITS], environment=_QUIET, folder=TESTS))
    return bits


def _compare_bits(name: str, bits: dict[str, str]) -> None:
    """Compare with the development build on this machine, which another compiler made."""
    expected = _bits(Path(sys.executable))
    different = [key for key in expected if bits.get(key) != expected[key]]
    if different or len(bits) != len(expected):
        raise CommandError(f"{name}: other bits than here for {different}")
    say(f"{name}: the same bits as here in all {len(bits)} cases")


def _first_example(readme: str) -> str:
    start = readme.index("```python")
    return readme[start : readme.index("```", start + 3)] + os.linesep


if __name__ == "__main__":
    try:
        main()
    except CommandError as error:
        sys.exit(f"error: {error}")

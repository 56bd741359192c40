"""Builds the sdist and all wheels on one Linux machine: `python -m tools.build_wheels`.

Clang and the C libraries of all targets come from the package ziglang. The headers of the Python
that builds serve all targets: those of CPython differ between 64-bit Unix systems in nothing that
the module uses.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.commands import (
    BUILD,
    DIST,
    OLDEST_PYTHON,
    ROOT,
    STABLE_PYTHON,
    CommandError,
    required_python,
    run,
    say,
)

LARGEST_WHEEL = 2_000_000


@dataclass(frozen=True)
class Target:
    """A system that wheels are built for, as pip, zig, CMake and Python call it."""

    wheel_platform: str
    zig: str
    system: str
    processor: str
    host_platform: str
    extension_suffix: str  # without the version of Python, which stands in the braces

    @property
    def is_linux(self) -> bool:
        return self.system == "Linux"


TARGETS = (
    Target(
        "manylinux_2_17_x86_64",
        "x86_64-linux-gnu.2.17",
        "Linux",
        "x86_64",
        "linux-x86_64",
        ".cpython-{}-x86_64-linux-gnu.so",
    ),
    Target(
        "manylinux_2_17_aarch64",
        "aarch64-linux-gnu.2.17",
        "Linux",
        "aarch64",
        "linux-aarch64",
        ".cpython-{}-aarch64-linux-gnu.so",
    ),
    Target(
        "macosx_11_0_x86_64",
        "x86_64-macos.11.0",
        "Darwin",
        "x86_64",
        "macosx-11.0-x86_64",
        ".cpython-{}-darwin.so",
    ),
    Target(
        "macosx_11_0_arm64",
        "aarch64-macos.11.0",
        "Darwin",
        "arm64",
        "macosx-11.0-arm64",
        ".cpython-{}-darwin.so",
    ),
)


def main() -> None:
    """Build what is asked for into dist/, and refuse what does not keep its promises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [target.wheel_platform for target in TARGETS]
    parser.add_argument("--platform", choices=names, action="append", help="default: all of them")
    chosen = parser.parse_args().platform or names
    _remove_old(DIST)
    build_sdist()
    tools = _zig_tools(BUILD / "zig", _zig())
    for target in TARGETS:
        if target.wheel_platform in chosen:
            for version in (OLDEST_PYTHON, STABLE_PYTHON):
                wheel = build_wheel(target, version, tools)
                check_wheel(wheel)
                say(f"{wheel.stat().st_size / 1e6:5.2f} MB  {wheel.name}")


def build_sdist() -> Path:
    """Return the source distribution."""
    run([sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT])
    (sdist,) = DIST.glob("*.tar.gz")
    say(f"{sdist.stat().st_size / 1e6:5.2f} MB  {sdist.name}")
    return sdist


def build_wheel(target: Target, version: str, tools: dict[str, Path]) -> Path:
    """Return the wheel for one system and version of Python, in dist/, with its final tags."""
    folder = BUILD / f"{target.wheel_platform}-{version}"
    raw = folder / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    defines = {
        "CMAKE_SYSTEM_NAME": target.system,
        "CMAKE_SYSTEM_PROCESSOR": target.processor,
        "CMAKE_CXX_COMPILER": f"{tools['zig']};c++;-target;{target.zig}",
        "CMAKE_AR": tools["ar"],
        "CMAKE_RANLIB": tools["ranlib"],
        "CMAKE_INSTALL_NAME_TOOL": tools["nothing"],
    }
    # The linker strips already, and the machine's own strip knows no other systems.
    settings = {"build-dir": folder / "cmake", "install.strip": "false"}
    settings |= {f"cmake.define.{key}": value for key, value in defines.items()}
    options = [f"--config-settings={key}={value}" for key, value in settings.items()]
    environment = {
        "_PYTHON_HOST_PLATFORM": target.host_platform,
        "SETUPTOOLS_EXT_SUFFIX": target.extension_suffix.format(version.replace(".", "")),
    }
    pip = [required_python(version), "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "wheel", "--no-deps", "-w", raw, *options, ROOT], environment=environment)
    (wheel,) = raw.glob("*.whl")
    return _tagged_for_linux(wheel, target) if target.is_linux else _moved(wheel)


def check_wheel(wheel: Path) -> None:
    """Refuse a wheel that is too large, or whose module uses more than the stable ABI."""
    size = wheel.stat().st_size
    if size > LARGEST_WHEEL:
        raise CommandError(f"{wheel.name} has {size} bytes; allowed are {LARGEST_WHEEL}")
    if "-abi3-" not in wheel.name:
        return
    report = json.loads(run([sys.executable, "-m", "abi3audit", "--strict", "--report", wheel]))
    modules = [module for spec in report["specs"].values() for module in spec["wheel"]]
    if not modules or not all(
        module["result"]["is_abi3_baseline_compatible"] for module in modules
    ):
        raise CommandError(f"{wheel.name} does not keep to the stable ABI of its tag: {report}")


def _tagged_for_linux(wheel: Path, target: Target) -> Path:
    """Let auditwheel find the oldest C library that the wheel runs with, and name it by that."""
    binaries = Path(sys.executable).parent
    environment = {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    repaired = wheel.parent / "repaired"
    command = ["auditwheel", "repair", "--plat", "auto", "-w", repaired, wheel]
    run([sys.executable, "-m", *command], environment=environment)
    (result,) = repaired.glob("*.whl")
    if target.wheel_platform not in result.stem:
        raise CommandError(f"{result.name} should be a wheel for {target.wheel_platform}")
    return _moved(result)


def _moved(wheel: Path) -> Path:
    return Path(shutil.move(wheel, DIST / wheel.name))


def _zig() -> Path:
    """Return the compiler, which only builds need to be installed."""
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        raise CommandError("there is no compiler for other systems: pip install '.[wheels]'")
    return Path(found.origin).parent / "zig"


def _zig_tools(folder: Path, zig: Path) -> dict[str, Path]:
    """Write programs of one word, as CMake wants them; install_name_tool has nothing to do."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = {name: f'exec "{zig}" {name} "$@"' for name in ("ar", "ranlib")} | {"nothing": "exit 0"}
    for name, line in lines.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(stat.S_IRWXU)
    return {"zig": zig, **{name: folder / name for name in lines}}


def _remove_old(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for pattern in ("*.whl", "*.tar.gz"):
        for path in folder.glob(pattern):
            path.unlink()


if __name__ == "__main__":
    try:
        main()
    except CommandError as error:
        sys.exit(f"error: {error}")

"""Runs other programs: interpreters of several versions, environments of their own, and logs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
# The first is the oldest supported version; the stable ABI serves the second and all later ones.
OLDEST_PYTHON, STABLE_PYTHON = "3.11", "3.12"


class CommandError(Exception):
    """A command that had to succeed failed; its output is part of the message."""


def run(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str | Path] | None = None,
    folder: Path = ROOT,
    show: bool = False,
) -> str:
    """Return what the command prints, or raise with all of it; `show` lets it print by itself."""
    arguments = [str(part) for part in command]
    variables = {**os.environ, **{key: str(value) for key, value in (environment or {}).items()}}
    result = subprocess.run(
        arguments,
        cwd=folder,
        env=variables,
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode:
        raise CommandError(
            f"{' '.join(arguments)} ended with code {result.returncode}\n{result.stdout or ''}"
        )
    return result.stdout or ""


def say(text: str) -> None:
    """Print at once, so that the order is kept where commands print by themselves."""
    print(text, flush=True)


def find_python(version: str) -> Path | None:
    """Return an interpreter of this version from PATH, or from pyenv, or None."""
    candidates = [Path(sys.executable), *_on_path(f"python{version}")]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)
    return next((path for path in candidates if _version_of(path) == version), None)


def required_python(version: str) -> Path:
    """Return an interpreter of this version, or say that there is none."""
    python = find_python(version)
    if python is None:
        raise CommandError(
            f"no Python {version} was found in PATH or under pyenv: install one, with its headers"
        )
    return python


def new_environment(name: str, python: Path) -> Path:
    """Return the interpreter of a new, empty environment, in place of the last of its name."""
    folder = BUILD / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    run([python, "-m", "venv", folder])
    return folder / "bin" / "python"


def install(python: Path, *requirements: str | Path) -> None:
    """Install by pip into the environment of this interpreter."""
    run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements])


def _on_path(name: str) -> list[Path]:
    found = shutil.which(name)
    return [Path(found)] if found else []


def _version_of(python: Path) -> str | None:
    """Return major and minor version, or None where there is no interpreter that works."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        result = subprocess.run(
            [str(python), "-c", code], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()

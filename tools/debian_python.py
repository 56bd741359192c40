"""A Python of another processor or version, from Debian's packages, run by qemu where it must be.

Nothing is installed: packages are fetched by apt with lists of its own, signatures checked as ever,
and unpacked into a folder.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.commands import BUILD, CommandError, run

_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
_LIBRARIES = (
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "libzstd1",
    "zlib1g",
)
# Names that changed when time became 64 bits wide, in releases after bookworm.
_NEWER_NAMES = {"libssl3": "libssl3t64"}


@dataclass(frozen=True)
class DebianPython:
    """Python of a release of Debian, for a processor as Debian calls it.

    Where `processor` has to be emulated, it is one that does not sign return addresses: newer
    Pythons of Debian do so with all of them, and qemu computes a signature twenty times slower
    than the program until the next one.
    """

    version: str
    release: str
    architecture: str
    machine: str
    processor: str = "neoverse-n1"

    def __str__(self) -> str:
        processor = f" ({self.processor})" if self._is_emulated else ""
        return f"Python {self.version} on {self.machine}{processor}"

    @property
    def root(self) -> Path:
        """Where its files are."""
        return BUILD / "debian" / f"{self.release}-{self.architecture}"

    @property
    def packages(self) -> Path:
        """Where its Python packages are."""
        return self.root / "packages"

    def prepare(self) -> None:
        """Fetch and unpack it, unless that was done before."""
        if (self.root / "complete").exists():
            return
        shutil.rmtree(self.root, ignore_errors=True)
        names = [name if self._is_old else _NEWER_NAMES.get(name, name) for name in _LIBRARIES]
        python = f"python{self.version}"
        names += [f"{python}-minimal", f"lib{python}-minimal", f"lib{python}-stdlib"]
        _unpack(self.release, self.architecture, names, self.root)
        if not (self.root / "lib").exists():  # newer releases leave /lib to another package
            (self.root / "lib").symlink_to("usr/lib")
        (self.root / "complete").touch()

    def install(self, *requirements: str | Path) -> None:
        """Install wheels for it into a folder of their own, in place of those of the last time."""
        shutil.rmtree(self.packages, ignore_errors=True)
        platforms = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
        options = [f"--platform={name}_{self.machine}" for name in platforms]
        options += ["--only-binary=:all:", f"--python-version={self.version}", "--no-compile"]
        command = ["pip", "install", "-q", "--disable-pip-version-check", "--target", self.packages]
        run(["python3", "-m", *command, *options, *requirements])

    def run(self, arguments: Sequence[str | Path], folder: Path, *, show: bool = False) -> str:
        """Run this Python in a folder and return what it prints."""
        environment = {"PYTHONPATH": self.packages, "PYTHONHOME": self.root / "usr"}
        environment |= {"OPENBLAS_NUM_THREADS": "1", "SCIPY_ARRAY_API": "1"}
        # Two thirds of an import are compilation, unless the process before has left its results.
        environment["PYTHONDONTWRITEBYTECODE"] = ""
        python = self.root / "usr" / "bin" / f"python{self.version}"
        command = [*self._launcher(), python, *arguments]
        return run(command, environment=environment, folder=folder, show=show)

    @property
    def _is_emulated(self) -> bool:
        return self.machine != os.uname().machine

    @property
    def _is_old(self) -> bool:
        return self.release == "bookworm"

    def _launcher(self) -> list[str | Path]:
        if self._is_emulated:
            return [_emulator(self.machine), "-cpu", self.processor, "-L", self.root]
        # Loader and C library are its own, too: they may be newer than those of this machine.
        libraries = self.root / "usr" / "lib" / f"{self.machine}-linux-gnu"
        (loader,) = libraries.glob("ld-linux-*.so.*")
        return [loader, "--library-path", libraries]


def _emulator(machine: str) -> Path:
    """Return qemu for this processor: the installed one, or one that is fetched."""
    installed = shutil.which(f"qemu-{machine}") or shutil.which(f"qemu-{machine}-static")
    if installed:
        return Path(installed)
    folder = BUILD / "debian" / "qemu"
    emulator = folder / "usr" / "bin" / f"qemu-{machine}-static"
    if not emulator.exists():
        _unpack(_own_release(), _own_architecture(), ["qemu-user-static"], folder)
    return emulator


def _unpack(release: str, architecture: str, names: Sequence[str], folder: Path) -> None:
    """Fetch packages of a release and unpack them into a folder."""
    apt = BUILD / "debian" / "apt" / f"{release}-{architecture}"
    archives = apt / "archives"
    for part in ("state/lists/partial", "cache/archives/partial", "archives"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    sources = apt / "debian.sources"
    sources.write_text(_sources_of(release))
    settings = {
        "Dir::State": apt / "state",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": apt / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
    }
    options = [f"-o{key}={value}" for key, value in settings.items()]
    run(["apt-get", *options, "-q", "update"], folder=archives)
    run(["apt-get", *options, "-q", "download", *names], folder=archives)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (archive,) = archives.glob(f"{name}_*.deb")
        run(["dpkg", "-x", archive, folder])


def _sources_of(release: str) -> str:
    """Return where this machine takes packages from, for another release."""
    if not _SOURCES.exists():
        raise CommandError(f"{_SOURCES} does not exist: Pythons for emulation come from Debian")
    return _SOURCES.read_text().replace(_own_release(), release)


def _own_release() -> str:
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def _own_architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]

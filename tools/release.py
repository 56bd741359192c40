"""Checks what a release needs, and publishes nothing: `python -m tools.release`.

It reports all that is missing, not only the first of it, and then ends with code 1.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools.build_wheels import TARGETS, check_wheel
from tools.commands import DIST, ROOT, CommandError, run, say

_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_NEEDED = ("CITATION.cff", "LICENSE", "README.md", "SECURITY.md")


def main() -> None:
    """Say what is missing, or how to publish."""
    version = version_of_source()
    say(f"powersketch {version}")
    missing = [
        *missing_in_repository(version),
        *missing_in_changelog((ROOT / "CHANGELOG.md").read_text(), version),
        *missing_distributions(version),
        *failing_commands(),
    ]
    for sentence in missing:
        say(f"missing: {sentence}")
    if missing:
        sys.exit(1)
    say(
        "Nothing is missing. Nothing was published, either: upload the files in dist/ and the site "
        "in build/docs, to the address in [project.urls], by hand."
    )


def version_of_source() -> str:
    """Return the version from the one place where it stands."""
    source = (ROOT / "src/powersketch/__init__.py").read_text()
    return str(_VERSION.findall(source)[0])


def missing_in_repository(version: str) -> Iterator[str]:
    """Yield what is wrong with files, work tree and tag."""
    for name in _NEEDED:
        if not (ROOT / name).exists():
            yield f"the file {name}"
    if run(["git", "status", "--porcelain"]).strip():
        yield "a commit: the work tree has changes"
    if f"v{version}" not in run(["git", "tag", "--points-at", "HEAD"]).split():
        yield f"the tag v{version} at this commit: git tag -s v{version}"


def missing_in_changelog(text: str, version: str) -> Iterator[str]:
    """Yield what the changelog lacks: a dated section, and nothing left over above it."""
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    dated = re.compile(rf"\[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}")
    if not any(dated.fullmatch(heading) for heading in headings):
        yield f"a section '## [{version}] - YYYY-MM-DD' in CHANGELOG.md"
    unreleased = text.partition("## [Unreleased]")[2].partition("\n## ")[0]
    if unreleased.strip():
        yield "an empty section [Unreleased]: its entries belong to the release"


def missing_distributions(version: str) -> Iterator[str]:
    """Yield which files of dist/ are not there or not right."""
    if not (DIST / f"powersketch-{version}.tar.gz").exists():
        yield f"the sdist of {version}: run make wheels"
    else:
        yield from missing_in_sdist(DIST / f"powersketch-{version}.tar.gz", version)
        yield from _other_sources(DIST / f"powersketch-{version}.tar.gz")
    for target in TARGETS:
        for tag in ("cp311-cp311", "cp312-abi3"):
            found = list(DIST.glob(f"powersketch-{version}-{tag}-*{target.wheel_platform}.whl"))
            if len(found) != 1:
                yield f"the wheel {tag} for {target.wheel_platform}: run make wheels"
            else:
                yield from _faults_of_wheel(found[0])
                yield from _other_sources(found[0])


def missing_in_sdist(sdist: Path, version: str) -> Iterator[str]:
    """Yield which files that a build needs the source distribution lacks."""
    with tarfile.open(sdist) as archive:
        names = set(archive.getnames())
    for path in ("CMakeLists.txt", "native/exports.map", "pyproject.toml", *_NEEDED):
        if f"powersketch-{version}/{path}" not in names:
            yield f"{path} in {sdist.name}"


def _faults_of_wheel(wheel: Path) -> Iterator[str]:
    try:
        check_wheel(wheel)
    except CommandError as error:
        yield str(error)
    with zipfile.ZipFile(wheel) as archive:
        if not any(name.endswith("licenses/LICENSE") for name in archive.namelist()):
            yield f"the licence in {wheel.name}"


def _other_sources(distribution: Path) -> Iterator[str]:
    """Tell of a distribution that was built from another state of the sources."""
    different = different_sources(packed_files(distribution))
    if different:
        yield f"{distribution.name} of these sources, not of others ({different[0]}): make wheels"


def packed_files(distribution: Path) -> dict[str, bytes]:
    """Return the files of an sdist or wheel, by where they stand in the repository."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            names = [name for name in wheel.namelist() if not name.endswith("/")]
            return {f"src/{name}": wheel.read(name) for name in names}
    with tarfile.open(distribution) as sdist:
        opened = {member.name: sdist.extractfile(member) for member in sdist if member.isfile()}
        return {name.partition("/")[2]: file.read() for name, file in opened.items() if file}


def different_sources(packed: Mapping[str, bytes]) -> list[str]:
    """Return which sources are not packed as they are here, of the folders that are packed."""
    folders = [name for name in ("native", "src/powersketch") if _lies_in(name, packed)]
    here = run(["git", "ls-files", *folders]).split() if folders else []
    gone = [name for name in packed if name.endswith(".py") and _lies_in("src/powersketch", [name])]
    return sorted(
        name
        for name in {*here, *gone}
        if not (ROOT / name).exists() or packed.get(name) != (ROOT / name).read_bytes()
    )


def _lies_in(folder: str, names: Iterable[str]) -> bool:
    return any(name.startswith(f"{folder}/") for name in names)


def failing_commands() -> Iterator[str]:
    """Yield which of the commands that check the rest do not pass."""
    for target in ("test", "docs", "test-wheels"):
        try:
            run(["make", target], show=True)
        except CommandError as error:
            yield f"a passing make {target}: {error}"


if __name__ == "__main__":
    main()

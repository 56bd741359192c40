"""A release lacks what it should lack, and nothing else."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import build_wheels, release
from tools.commands import CommandError

CHANGELOG = "# Changelog\n\n## [Unreleased]\n{}\n## [9.9] - 2030-01-31\n\n- All of it.\n"


class TestChangelog:
    def test_a_dated_section_below_an_empty_one_is_complete(self) -> None:
        assert list(release.missing_in_changelog(CHANGELOG.format(""), "9.9")) == []

    @pytest.mark.parametrize("version", ["9.8", "9.99", "9x9"])
    def test_other_versions_have_no_section(self, version: str) -> None:
        (missing,) = release.missing_in_changelog(CHANGELOG.format(""), version)
        assert f"[{version}] - YYYY-MM-DD" in missing

    def test_entries_without_a_release_are_seen(self) -> None:
        (missing,) = release.missing_in_changelog(CHANGELOG.format("\n- More.\n"), "9.9")
        assert "empty section [Unreleased]" in missing


class TestDistributions:
    @pytest.fixture(autouse=True)
    def dist(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(release, "DIST", tmp_path)
        return tmp_path

    def test_an_empty_folder_lacks_all_of_them(self) -> None:
        missing = list(release.missing_distributions("9.9"))
        assert len(missing) == 1 + 2 * len(build_wheels.TARGETS)
        assert all(sentence.endswith("run make wheels") for sentence in missing)

    def test_files_that_a_build_needs_are_missed(self, dist: Path) -> None:
        sdist = dist / "powersketch-9.9.tar.gz"
        with tarfile.open(sdist, "w:gz") as archive:
            for name in ("CMakeLists.txt", "native/exports.map", "pyproject.toml", "LICENSE"):
                archive.addfile(tarfile.TarInfo(f"powersketch-9.9/{name}"), io.BytesIO())
        missing = {sentence.split()[0] for sentence in release.missing_in_sdist(sdist, "9.9")}
        assert missing == {"CITATION.cff", "README.md", "SECURITY.md"}


class TestSources:
    """Distributions that were built before the last change would be published by mistake."""

    NAMES = ("native/dispatch.cpp", "native/exports.map", "src/powersketch/__init__.py")

    def packed(self) -> dict[str, bytes]:
        listed = release.run(["git", "ls-files", "native", "src"]).split()
        return {name: (release.ROOT / name).read_bytes() for name in listed}

    def test_those_of_here_are_the_same(self) -> None:
        assert release.different_sources(self.packed()) == []

    @pytest.mark.parametrize("name", NAMES)
    def test_changed_and_missing_ones_are_named(self, name: str) -> None:
        packed = self.packed()
        packed[name] += b"\n"
        assert release.different_sources(packed) == [name]
        del packed[name]
        assert release.different_sources(packed) == [name]

    def test_those_that_are_gone_are_named(self) -> None:
        gone = "src/powersketch/gone.py"
        assert release.different_sources({**self.packed(), gone: b""}) == [gone]

    @pytest.mark.parametrize("kind", ["sdist", "wheel"])
    def test_files_are_found_where_they_stand_here(self, tmp_path: Path, kind: str) -> None:
        content, name = b"text", "src/powersketch/__init__.py"
        if kind == "wheel":
            path = tmp_path / "powersketch-9.9-cp311-cp311-any.whl"
            with zipfile.ZipFile(path, "w") as wheel:
                wheel.writestr("powersketch/__init__.py", content)
        else:
            path = tmp_path / "powersketch-9.9.tar.gz"
            member = tarfile.TarInfo(f"powersketch-9.9/{name}")
            member.size = len(content)
            with tarfile.open(path, "w:gz") as sdist:
                sdist.addfile(member, io.BytesIO(content))
        assert release.packed_files(path) == {name: content}


def test_commands_that_fail_are_all_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that passes is not, and the others run all the same."""

    def run(command: list[str], **_: object) -> str:
        if command[1] != "docs":
            raise CommandError("it failed")
        return ""

    monkeypatch.setattr(release, "run", run)
    missing = list(release.failing_commands())
    assert missing == [
        "a passing make test: it failed",
        "a passing make test-wheels: it failed",
    ]


def test_the_version_stands_in_one_place() -> None:
    version = release.version_of_source()
    for name in ("pyproject.toml", "CITATION.cff", "CMakeLists.txt", "docs/conf.py"):
        assert f'"{version}"' not in (release.ROOT / name).read_text("utf-8")

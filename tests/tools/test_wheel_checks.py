"""What the checks of wheels choose and refuse; that they pass is for `make test-wheels` to show."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools import build_wheels, check_wheels, debian_python
from tools.commands import ROOT, CommandError, find_python, required_python, run
from tools.debian_python import DebianPython


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of empty files that have the names of all wheels."""
    for target in build_wheels.TARGETS:
        for tag in ("cp311-cp311", "cp312-abi3"):
            (tmp_path / f"powersketch-9.9-{tag}-{target.wheel_platform}.whl").touch()
    monkeypatch.setattr(check_wheels, "DIST", tmp_path)
    return tmp_path


class TestChoiceOfWheels:
    @pytest.mark.parametrize(
        ("version", "tag"),
        [("3.11", "cp311-cp311"), ("3.12", "cp312-abi3"), ("3.14", "cp312-abi3")],
    )
    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_it_is_that_of_pip(self, dist: Path, version: str, tag: str, machine: str) -> None:
        wheel = check_wheels.wheel_for(version, machine)
        assert wheel == dist / f"powersketch-9.9-{tag}-manylinux_2_17_{machine}.whl"

    def test_a_missing_one_is_named_with_the_remedy(self, dist: Path) -> None:
        for wheel in dist.glob("*abi3*aarch64*"):
            wheel.unlink()
        with pytest.raises(CommandError, match=r"0 wheels cp312-abi3 for aarch64.*make wheels"):
            check_wheels.wheel_for("3.13", "aarch64")


class TestWheels:
    def test_large_ones_are_refused(self, tmp_path: Path) -> None:
        wheel = tmp_path / "powersketch-9.9-cp311-cp311-any.whl"
        wheel.write_bytes(bytes(build_wheels.LARGEST_WHEEL))
        build_wheels.check_wheel(wheel)
        wheel.write_bytes(bytes(build_wheels.LARGEST_WHEEL + 1))
        with pytest.raises(CommandError, match=r"2000001 bytes; allowed are 2000000"):
            build_wheels.check_wheel(wheel)


class TestBits:
    @pytest.fixture(autouse=True)
    def _bits_of_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(check_wheels, "_bits", lambda _: {"one": "a", "two": "b"})

    def test_equal_ones_are_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        check_wheels._compare_bits("there", {"one": "a", "two": "b"})
        assert capsys.readouterr().out == "there: the same bits as here in all 2 cases\n"

    @pytest.mark.parametrize("bits", [{"one": "a", "two": "c"}, {"one": "a"}, {}])
    def test_others_are_refused_by_name(self, bits: dict[str, str]) -> None:
        with pytest.raises(CommandError, match=r"there: other bits than here for \[.*'two'\]"):
            check_wheels._compare_bits("there", bits)


def test_oldest_versions_are_those_of_the_metadata_and_the_documentation() -> None:
    oldest = check_wheels.oldest_dependencies()
    assert all(re.fullmatch(r"[a-z0-9-]+==[\d.]+\.\*", requirement) for requirement in oldest)
    versions = dict(re.findall(r"([\w-]+)==([\d.]+)\.\*", " ".join(oldest)))
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    for name, package in {
        "NumPy": "numpy",
        "SciPy": "scipy",
        "scikit-learn": "scikit-learn",
    }.items():
        assert f"{name} {versions[package]}" in page


def test_all_tests_that_wheels_run_are_there() -> None:
    chosen = {*check_wheels.CORE, *check_wheels.EMULATED, *check_wheels.STARTING_OTHERS}
    for path, *names in (choice.split("::") for choice in sorted(chosen)):
        assert (ROOT / path).exists(), path
        assert all(name in (ROOT / path).read_text("utf-8") for name in names), names


def test_the_first_example_is_that_of_the_readme() -> None:
    example = check_wheels._first_example("text\n```python\n>>> 1\n1\n```\n```python\n>>> 2\n```\n")
    assert example.strip() == "```python\n>>> 1\n1"


def test_a_check_that_fails_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail() -> None:
        raise CommandError("a reason")

    checks = {"first": fail, "second": lambda: print("it runs")}
    monkeypatch.setattr(check_wheels, "CHECKS", checks)
    monkeypatch.setattr(check_wheels, "TESTS", tmp_path / "tests")
    monkeypatch.setattr(check_wheels, "_copy_tests", (tmp_path / "tests").mkdir)
    monkeypatch.setattr(sys, "argv", ["check_wheels"])
    with pytest.raises(CommandError, match=r"failing checks: first$"):
        check_wheels.main()
    assert "error: a reason\n== second\nit runs\n" in capsys.readouterr().out
    assert not (tmp_path / "tests").exists()


class TestEmulation:
    """Of the processor that is not this machine's, on which no Python has to be unpacked."""

    @pytest.fixture
    def python(self, monkeypatch: pytest.MonkeyPatch) -> DebianPython:
        monkeypatch.setattr(debian_python, "_emulator", lambda _: Path("qemu"))
        other = {"x86_64": "aarch64"}.get(os.uname().machine, "x86_64")
        return DebianPython("3.13", "trixie", "any", other, "simple")

    def test_a_processor_is_named(self, python: DebianPython) -> None:
        assert str(python) == f"Python 3.13 on {python.machine} (simple)"
        here = replace(python, machine=os.uname().machine)
        assert str(here) == f"Python 3.13 on {here.machine}"

    def test_what_was_compiled_is_kept(
        self, python: DebianPython, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []
        monkeypatch.setattr(debian_python, "run", lambda *a, **k: calls.append((a, k)) or "")
        python.run(["-V"], Path())
        (((command,), options),) = calls
        assert command[:3] == [Path("qemu"), "-cpu", "simple"]
        assert options["environment"]["PYTHONDONTWRITEBYTECODE"] == ""


class TestCommands:
    def test_output_is_returned(self) -> None:
        assert run([sys.executable, "-c", "print(6)"]).split() == ["6"]

    def test_a_failure_shows_all_that_was_printed(self) -> None:
        script = "import sys; print('a reason'); sys.exit(3)"
        with pytest.raises(CommandError, match=r"ended with code 3\na reason"):
            run([sys.executable, "-c", script])

    def test_this_python_is_found(self) -> None:
        found = find_python(f"{sys.version_info[0]}.{sys.version_info[1]}")
        assert found == Path(sys.executable)

    def test_one_that_is_not_there_is_asked_for(self) -> None:
        assert find_python("3.99") is None
        with pytest.raises(CommandError, match=r"no Python 3\.99 was found.*install one"):
            required_python("3.99")

"""Outputs never overwrite an input, one another, or anything when a run fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powersketch.cli.main import main
from powersketch.exceptions import InputError
from powersketch.files import atomic_write, check_outputs
from tests.comparison.measured_rows import unit_rows

QUICK = ["--components", "4", "--seeds", "1", "--methods", "power", "--seed", "0"]


@pytest.fixture
def content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table in the working directory, whose text must stay."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("a.csv", unit_rows(20), delimiter=",")
    return Path("a.csv").read_text()


def link(make: Callable[[str, str], None], name: str) -> str:
    make("a.csv", name)
    return name


@pytest.mark.parametrize("way", ["same", "relative", "absolute", "symbolic", "hard"])
def test_the_input_is_not_overwritten(
    content: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    ways = {
        "same": lambda: "a.csv",
        "relative": lambda: "folder/../a.csv",
        "absolute": lambda: str(Path("a.csv").absolute()),
        "symbolic": lambda: link(os.symlink, "b.csv"),
        "hard": lambda: link(os.link, "b.csv"),
    }
    assert main(["compare", "a.csv", *QUICK, "--report", ways[way]()]) == 2
    assert "is the file that is read, a.csv; choose another name" in capsys.readouterr().err
    assert Path("a.csv").read_text() == content


@pytest.mark.parametrize(
    ("model", "page"), [("out", "out"), ("out", "./out"), ("out", "link"), ("out", "OUT")]
)
def test_outputs_do_not_overwrite_one_another(
    content: str, model: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.symlink("out", "link")
    assert main(["fit", "a.csv", "--target", "0", "--model", model, "--report", page]) == 2
    assert f"{model} and {Path(page)} are the same file" in capsys.readouterr().err
    assert not Path("out").exists()


def test_the_page_that_is_named_after_the_file_counts_as_well(
    content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "a.csv", "--target", "0", "--model", "a-report.html"]) == 2
    assert "are the same file" in capsys.readouterr().err


def test_capitals_where_the_file_system_does_not_tell_them_apart(
    content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There both names lead to the same file, and the system says so."""
    os.link("a.csv", "A.CSV")
    with pytest.raises(InputError, match=r"A\.CSV is the file that is read"):
        check_outputs([Path("a.csv")], [Path("A.CSV")])
    check_outputs([Path("a.csv")], [Path("B.CSV"), None, Path("c.csv")])


def test_only_files_are_replaced(content: str) -> None:
    for device in ("/dev/null", "pipe"):
        if device == "pipe":
            os.mkfifo(device)
        with pytest.raises(InputError, match=f"{device} is a device or a pipe"):
            check_outputs([], [Path(device)])
    with pytest.raises(InputError, match="is a folder"):
        check_outputs([], [Path()])
    os.symlink("missing/file", "dangling")
    with pytest.raises(InputError, match="nothing can be written to"):
        check_outputs([], [Path("dangling")])


def test_what_is_printed_is_not_overwritten(content: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "powersketch", "compare", "a.csv", *QUICK, "--report"]
    for name in ("/dev/stdout", "printed"):
        with open("printed", "w") as printed:
            result = subprocess.run(
                [*command, name],
                env=environment,
                stdout=printed,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert result.returncode == 2
        assert f"{name} is where the command prints" in result.stderr


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("disk full"), RuntimeError("bug")])
def test_a_failed_run_leaves_what_was_there(
    content: str, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    names = ["a-comparison.html", "a.csv"]
    for name in names:
        if name != "a.csv":
            Path(name).write_text("old")

    def failing(path: Path, *arguments: Any, **named: Any) -> None:
        with path.open("w") as stream:
            stream.write("half of it")
        raise error

    monkeypatch.setattr(Path, "write_text", failing)
    assert main(["compare", "a.csv", *QUICK]) != 0
    assert sorted(os.listdir()) == names
    assert {Path(name).read_text() for name in names} == {"old", content}


def test_a_link_stays_and_its_file_keeps_its_permissions(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / ("n" * 250)
    file.write_text("old")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to(file)
    with atomic_write(tmp_path / "link") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(folder) == [file.name]

"""``powersketch compare``: options, output, errors, interruption."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import normalize
from typer.testing import CliRunner

import powersketch
from powersketch.cli.main import app, main
from powersketch.cli.options import bytes_from
from powersketch.kernels import ArcCosine, Gaussian, Kernel, Polynomial, resolved_gamma
from tests.comparison.measured_rows import failing_method, unit_rows

QUICK = ["--components", "4,8", "--seeds", "1", "--methods", "power,nystroem", "--seed", "0"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of rows in the working directory."""
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "rows.npy", 2.0 * unit_rows(40))
    return "rows.npy"


def figures(arguments: list[str]) -> dict[str, Any]:
    """Run the command and return what it printed as JSON."""
    result = CliRunner().invoke(app, ["compare", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    for name in ("date", "data_name"):
        found.pop(name)
    found["exact"].pop("seconds")
    for measured in found["measurements"]:
        for name in ("fit_seconds", "transform_seconds", "transform_bytes", "memory_bytes"):
            measured.pop(name)
    return found


def test_the_table_the_best_method_and_the_page(file: str) -> None:
    result = CliRunner().invoke(app, ["compare", file, *QUICK])
    assert result.exit_code == 0
    table = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert len(table) == 4
    assert "Polynomial(degree=2, gamma=1.0, coef0=0.0) on 40 × 7" in result.stdout
    assert "Best: " in result.stdout
    assert "The page is rows-comparison.html." in result.stdout
    page = Path("rows-comparison.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert "nystroem" in page
    assert sorted(os.listdir()) == ["rows-comparison.html", "rows.npy"]


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ([], Polynomial()),
        (["--degree", "4", "--gamma", "0.5", "--coef0", "1"], Polynomial(4, 0.5, 1.0)),
        (["--kernel", "gaussian", "--gamma", "2"], Gaussian(2.0)),
        (["--kernel", "arc-cosine", "--order", "0", "--depth", "2"], ArcCosine(0, 2)),
    ],
)
def test_the_same_as_the_function(file: str, options: list[str], kernel: Kernel) -> None:
    expected = powersketch.compare(
        np.load(file),
        kernel,
        methods=["power", "nystroem"],
        components=[4, 8],
        seeds=1,
        pilot_rows=20,
        random_state=0,
    )
    found = figures([file, *QUICK, "--rows", "20", *options])
    assert found["data_name"] == "rows.npy"
    assert without_times(found) == without_times(expected.to_dict())


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("linear", "Linear("),
        ("poly", "Polynomial(degree=2"),
        ("rbf", "Gaussian(gamma="),
        ("ntk", "NeuralTangent(depth=1"),
        ("dot-product", "DotProduct("),
    ],
)
def test_short_and_further_names_of_kernels(file: str, name: str, kernel: str) -> None:
    options = ["--n-components", "4", "--seeds", "1", "--methods", "nystroem-uniform"]
    assert figures([file, *options, "--kernel", name])["kernel"].startswith(kernel)


@pytest.mark.parametrize(
    "options", [["--kernel", "gaussian"], ["--gamma", "scale"], ["--gamma", "median"]]
)
def test_gamma_from_the_rows(file: str, options: list[str]) -> None:
    X = np.load(file)
    name = "median" if "median" in options else "scale"
    found = figures([file, "--components", "4", "--methods", "nystroem-uniform", *options])
    gamma = float(found["kernel"].partition("gamma=")[2].split(",")[0].rstrip(")"))
    assert gamma == pytest.approx(resolved_gamma(name, X))
    if name == "scale":
        assert gamma == pytest.approx(1.0 / (7 * X.var()))


def test_normalized_rows_without_the_target(file: str) -> None:
    X = np.load(file)
    np.savetxt("rows.csv", X, delimiter=",", header="a,b,c,d,e,f,g", comments="")
    np.save("unit.npy", normalize(X[:, :6]))
    one = figures(["rows.csv", *QUICK, "--normalize", "--target", "g"])
    two = figures(["unit.npy", *QUICK])
    assert one["data_shape"] == two["data_shape"] == [40, 6]
    assert one["measurements"][0]["frobenius"] == pytest.approx(
        two["measurements"][0]["frobenius"], rel=1e-9
    )


@pytest.mark.parametrize(
    ("text", "amount"),
    [("100", 100), ("2k", 2048), ("500M", 500 * 2**20), ("1.5 GiB", 3 * 2**29), ("1tb", 2**40)],
)
def test_amounts_of_memory(text: str, amount: int) -> None:
    assert bytes_from("budget-memory", text) == amount


def test_budgets(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--budget-seconds", "60", "--budget-memory", "1.5G"]
    found = figures([file, *QUICK, *options])
    assert (found["time_budget"], found["memory_budget"]) == (60.0, 3 * 2**29)
    assert main(["compare", file, *QUICK, *options]) == 0
    assert "within 60 s for 40 rows and 1.5 GiB for 40 rows." in capsys.readouterr().out
    assert main(["compare", file, *QUICK, "--budget-memory", "100"]) == 0
    assert "Best: memory_bytes=100 is too little" in capsys.readouterr().out


def test_a_failed_method_is_listed(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", file, "--components", "64", "--methods", "power,nystroem"]
    assert main(arguments) == 0
    assert "nystroem with 64 components failed: it has 20 features only" in capsys.readouterr().out


def test_nothing_measured_is_no_success(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", file, "--components", "64", "--methods", "nystroem"]) == 1
    assert "Best: no method has been measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.npy"], "nothing.npy is not a file"),
        (["rows.npy", "--methods", "powr"], "method 'powr' is unknown; those for Polynomial"),
        (["rows.npy", "--methods", "fourier"], "cannot do Polynomial"),
        (["rows.npy", "--kernel", "matern"], "kernel='matern' is unknown; use one of 'linear'"),
        (["rows.npy", "--kernel", "gaussian", "--degree", "3"], "gaussian kernel has no degree"),
        (["rows.npy", "--degree", "0"], "degree=0 is out of range"),
        (["rows.npy", "--gamma", "wide"], "gamma=wide is neither a number nor scale nor median"),
        (["rows.npy", "--components", "8,many"], "components has 'many'"),
        (["rows.npy", "--components", ","], "components is empty"),
        (["rows.npy", "--seeds", "0"], "seeds=0"),
        (["rows.npy", "--seeds", "x"], "seeds"),
        (["rows.npy", "--jobs", "0"], "n_jobs=0"),
        (["rows.npy", "--budget-memory", "much"], "budget-memory=much"),
        (["rows.npy", "--budget-memory", "3KM"], "budget-memory=3KM"),
        (["rows.npy", "--report", "no/where.html"], "nothing can be written to no"),
        (["rows.npy", "--report", "."], "is a folder"),
        (["rows.npy", "--target", "price"], "has no column 'price'; its columns have no names"),
        (["rows.npy", "--target", "7"], "give a number from 0 to 6"),
        (["rows.npy", "--task", "regression"], "has no effect without a target"),
        (["rows.npy", "--dtype", "int8"], "dtype='int8' is unknown"),
        (["rows.npy", "--nonsense"], "No such option"),
        ([], "Missing argument"),
        (["bad.npy"], "NaN"),
    ],
)
def test_errors_are_one_line(
    file: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("bad.npy", np.full((9, 2), np.nan))
    assert main(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert sorted(os.listdir()) == ["bad.npy", "rows.npy"]


def test_an_interruption_prints_and_writes_what_is_finished(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_method(monkeypatch, "slow", KeyboardInterrupt())
    arguments = ["compare", file, *QUICK, "--methods", "power,slow"]
    assert main(arguments) == 130
    out = capsys.readouterr().out
    assert "The comparison was interrupted" in out
    assert "Best: power with 4 components" in out
    assert Path("rows-comparison.html").is_file()
    assert main([*arguments, "--json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert found["complete"] is False
    assert [measured["method"] for measured in found["measurements"]] == ["power"]


def test_an_interruption_before_anything_is_finished(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("powersketch.comparison.run._experiment", interrupted)
    assert main(["compare", file, *QUICK]) == 130
    assert os.listdir() == ["rows.npy"]


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, TypeError, KeyError])
def test_faults_of_our_own_are_called_so(
    file: str,
    kind: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*arguments: Any, **named: Any) -> None:
        raise kind("a fault")

    monkeypatch.setattr("powersketch.comparison.run._experiment", broken)
    assert main(["compare", file, *QUICK]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"internal error: {kind.__name__}: ")
    assert "please report it" in error
    assert "--debug" in error
    assert "Traceback" not in error
    for arguments in (["--debug", "compare", file], ["compare", file, "--debug"]):
        assert main([*arguments, *QUICK]) == 1
        shown = capsys.readouterr().err
        assert shown.startswith("Traceback")
        assert "in broken" in shown
        assert shown.endswith(error)


@pytest.mark.parametrize(
    "arguments", [["nothing.npy"], ["rows.npy", "--seeds", "0"], ["rows.npy", "--nonsense"]]
)
def test_debug_shows_where_every_error_arises(
    file: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments, "--debug"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("Traceback")
    assert error.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(
    "error", [MemoryError(), MemoryError("no room"), PermissionError(13, "denied", "rows.npy")]
)
def test_want_of_memory_or_rights_is_no_fault_of_ours(
    file: str,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing(*arguments: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr("powersketch.comparison.run._experiment", failing)
    assert main(["compare", file, *QUICK]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert len(line) > len("error: ")


def test_results_are_written_even_if_nobody_reads_the_table(file: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "powersketch", "compare", file, *QUICK]
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        command, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    assert Path("rows-comparison.html").is_file()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("large", [True, False])
def test_rows_that_have_no_norm_are_not_normalized_in_silence(
    file: str, kind: type, large: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    X = unit_rows(20).astype(kind)
    X[3] *= np.sqrt(np.finfo(kind).max) * 9 if large else np.finfo(kind).tiny
    np.save("far.npy", X)
    assert main(["compare", "far.npy", *QUICK, "--normalize"]) == 2
    assert "far.npy, row 4: its norm is too large or too small" in capsys.readouterr().err


def test_the_same_figures_on_the_terminal_and_on_the_page(file: str) -> None:
    arguments = ["compare", file, "--components", "8", "--methods", "power", "--seeds", "3"]
    out = CliRunner().invoke(app, [*arguments, "--kernel", "gaussian"]).stdout
    page = Path("rows-comparison.html").read_text(encoding="utf-8")
    (spread,) = re.findall(r"\S+ ± \S+", out)
    assert f">{spread}<" in page
    assert "%" not in out
    (gamma,) = re.findall(r"Gaussian\(gamma=(\S+)\)", out)
    assert 3 <= len(gamma.lstrip("0.")) <= 4
    assert f"<h1>Feature maps compared: Gaussian(gamma={gamma})</h1>" in page


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(200, ""), (80, "transform, kind, fit, pencil"), (40, "transform, kind, fit, pencil, memory")],
)
def test_narrow_terminals_get_fewer_columns(
    file: str, width: int, left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    out = CliRunner().invoke(app, ["compare", file, *QUICK]).stdout
    assert ("Not shown for want of room: " in out) == bool(left_out)
    assert left_out in out


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"powersketch {powersketch.__version__}\n"
    assert main(["--help"]) == 0
    assert "compare" in capsys.readouterr().out
    assert main(["compare", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--kernel", "--components", "--budget-seconds", "--report", "--normalize"):
        assert option in text


def test_help_is_quick_to_load() -> None:
    """Nothing that takes long is loaded to say what the command can do."""
    code = "import sys, powersketch.cli.main; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert not {"numpy", "scipy", "sklearn"} & set(result.stdout.split())


def test_in_a_process_of_its_own(file: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PYTHONIOENCODING"] = "ascii"
    command = [sys.executable, "-m", "powersketch", "compare", file, *QUICK]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Best: " in result.stdout
    assert "?" not in result.stdout
    assert Path("rows-comparison.html").is_file()
    assert result.stderr == ""


def test_predictions_of_a_table_with_categories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    size, colour = random.normal(size=60), random.choice(["red", "blue"], size=60)
    price = size + (colour == "red")
    lines = [f"{s},{c},{p}" for s, c, p in zip(size, colour, price, strict=True)]
    Path("table.csv").write_text("\n".join(["size,colour,price", *lines]))
    options = ["--components", "8", "--methods", "power", "--coef0", "1", "--scale"]
    assert main(["compare", "table.csv", "--target", "price", *options]) == 0
    out = capsys.readouterr().out
    assert "On the columns themselves, the error of predictions is" in out
    assert "model = SketchedKernelRidge(features=features, random_state=0)" in out
    found = figures(["table.csv", "--target", "colour", *options])
    assert (found["task"], found["data_shape"]) == ("classification", [60, 2])
    assert "prediction error" in Path("table-comparison.html").read_text(encoding="utf-8")

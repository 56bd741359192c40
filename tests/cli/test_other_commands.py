"""``solve``, ``certify``, ``info`` and ``demo``; help, completion, and defaults of all commands."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import powersketch
from powersketch import accuracy
from powersketch.cli.main import app, main
from powersketch.kernels import Gaussian, Polynomial
from powersketch.reports import assess
from tests.cli.command_line import COMMAND, environment, on_terminal, write_table

COMMANDS = ("demo", "fit", "predict", "transform", "compare", "certify", "solve", "info")


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Rows in the working directory, as rows.npy; the last column is to be predicted."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(80, 5))
    np.save("rows.npy", X)
    write_table(Path("table.csv"))
    return X


def test_a_solved_system(rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--kernel", "gaussian", "--gamma", "0.5", "--alpha", "0.1", "--tol", "1e-9"]
    assert main(["solve", "rows.npy", "--target", "4", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["converged"] is True
    assert found["residual"] <= 1e-9
    x = np.load("rows-solution.npy")
    K = Gaussian(0.5)(rows[:, :4]) + 0.1 * np.eye(80)
    np.testing.assert_allclose(K @ x, rows[:, 4], atol=1e-8)
    assert main(["solve", "rows.npy", "--target", "4", *options, "-o", "other.npy"]) == 0
    assert "The solution is other.npy." in capsys.readouterr().out


def test_a_system_that_is_not_solved_is_a_failed_run(
    rows: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--preconditioner", "none", "--set", "max_iterations=1", "--alpha", "1e-8"]
    assert main(["solve", "rows.npy", "--target", "4", "--gamma", "0.1", *options]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("warning: ")
    assert Path("rows-solution.npy").is_file()


def test_a_certificate(rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--kernel", "poly", "--degree", "3", "--coef0", "1", "--n-components", "64"]
    assert main(["certify", "rows.npy", *options, "--seed", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    sketch = powersketch.PolynomialSketch(3, coef0=1.0, n_components=64, random_state=0).fit(rows)
    certificate = accuracy.certify(sketch, rows, random_state=0)
    assert found == json.loads(json.dumps(certificate.to_dict()))
    powersketch.save(sketch, "map.model")
    assert main(["certify", "rows.npy", "--model", "map.model", "--seed", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main(["certify", "rows.npy", "--landmarks", "--n-components", "20"]) == 0
    assert "LeverageNystroem" in capsys.readouterr().out
    sizes = ["--n-components", "auto", "--eps", "0.2"]
    assert main(["certify", "rows.npy", "--kernel", "rbf", "--gamma", "0.01", *sizes]) == 0
    assert "Certificate for 80 rows" in capsys.readouterr().out


def test_what_files_hold(rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "rows.npy"]) == 0
    assert "rows: 80\ncolumns: 5\nentries: float64" in capsys.readouterr().out
    assert main(["info", "table.csv"]) == 0
    assert "  colour: 3 categories, a column for each" in capsys.readouterr().out
    powersketch.save(powersketch.GaussianSketch(0.5, random_state=3).fit(rows), "map.model")
    assert main(["info", "map.model"]) == 0
    assert "class: GaussianSketch" in capsys.readouterr().out
    assert main(["info", "map.model", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["class"], found["seed"]) == ("GaussianSketch", 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "rows.npy"], "Missing option '--target'"),
        (["solve", "rows.npy", "--target", "9"], "give a number from 0 to 4"),
        (["solve", "table.csv", "--target", "colour"], "have to be numbers"),
        (["solve", "rows.npy", "--target", "4", "--tol", "0"], "tol=0.0"),
        (["solve", "rows.npy", "--target", "4", "--set", "kernle=1"], "has no parameter 'kernle'"),
        (["solve", "rows.npy", "--target", "4", "-o", "rows.npy"], "is the file that is read"),
        (["certify", "rows.npy", "--n-components", "many"], "'many', which is no whole number"),
        (["certify", "rows.npy", "--model", "rows.npy"], "rows.npy"),
        (["certify", "rows.npy", "--model", "m", "--degree", "3"], "brings its own kernel"),
        (["certify", "rows.npy", "--eps", "0.1"], "eps=0.1 has no meaning"),
        (["certify", "rows.npy", "--method", "magic"], "method='magic'"),
        (["info", "nothing.csv"], "nothing.csv is not a file"),
        (["info", "nothing.model"], "nothing.model is not a file"),
        (["info", "damaged.model"], "damaged.model"),
        (["demo", "--folder", "nowhere"], "nothing can be written to nowhere"),
        (["dance"], "No such command 'dance'"),
    ],
)
def test_bad_input_is_one_sentence(
    rows: np.ndarray, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("damaged.model").write_bytes(b"junk")
    before = sorted(os.listdir())
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: powersketch {command}" in result.stdout
    assert "--debug" in result.stdout


def test_help_fills_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of docstrings are longer than many terminals, and must not break twice."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["fit", "--help"]).stdout
    assert "measured on rows that it has not seen" in shown


def test_completion_for_shells() -> None:
    result = subprocess.run(
        COMMAND,
        env=environment(
            _POWERSKETCH_COMPLETE="complete_bash", COMP_WORDS="powersketch f", COMP_CWORD="1"
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.split() == ["fit"]


def test_nothing_heavy_is_loaded_for_help() -> None:
    code = "import sys, powersketch.cli.main; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert not {"numpy", "scipy", "sklearn", "pandas", "jinja2"} & set(result.stdout.split())


def defaults_of(command: str) -> dict[str, Any]:
    """Return the default of every option by its name in Python."""
    group = typer.main.get_command(app)
    found = group.commands[command].params  # type: ignore[attr-defined]
    return {parameter.name: parameter.default for parameter in found}


@pytest.mark.parametrize(
    ("command", "callable_", "names"),
    [
        ("fit", powersketch.SketchedKernelRidge, {"kernel", "features", "n_components", "alpha"}),
        ("fit", powersketch.SketchedKernelRidgeClassifier, {"kernel", "features", "alpha"}),
        ("fit", assess, {"task", "held_out"}),
        (
            "solve",
            powersketch.solve_kernel_system,
            {"alpha", "tol", "operator", "preconditioner", "method"},
        ),
        ("compare", powersketch.compare, {"task", "seeds", "pilot_rows", "alpha", "methods"}),
        ("certify", accuracy.certify, {"alpha", "confidence"}),
        ("certify", powersketch.PolynomialSketch, {"n_components", "eps"}),
        ("transform", powersketch.PolynomialSketch, {"n_components", "eps"}),
        ("certify", powersketch.LeverageNystroem, {"n_components", "eps"}),
    ],
)
def test_defaults_are_those_of_the_library(command: str, callable_: Any, names: set[str]) -> None:
    options = defaults_of(command)
    library = inspect.signature(callable_).parameters
    for name in names:
        given, own = options[name], library[name].default
        assert given == own or str(given) == str(own), name
    for option, name in (("seed", "random_state"), ("jobs", "n_jobs")):
        if name in library:
            assert options[option] == library[name].default


def test_options_without_a_default_leave_it_to_the_library() -> None:
    compare = defaults_of("compare")
    sizes = inspect.signature(powersketch.compare).parameters["components"].default
    assert compare["components"] == ",".join(map(str, sizes))
    for name in ("degree", "gamma", "coef0", "order", "depth"):
        assert compare[name] is None
    assert Polynomial() == Polynomial(2, 1.0, 0.0)  # as the help says


def test_progress_and_messages_are_for_terminals(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", gaps=True)
    arguments = ["fit", "table.csv", "--target", "size", "--kernel", "linear", "--alpha", "1"]
    shown = on_terminal(arguments, tmp_path)
    assert shown.code == 0
    for words in ("fitting without 11 rows held out", "fitting all rows", "━"):
        assert words in shown.terminal
    assert "6 of 60 rows have no value of size and are left out" in shown.terminal
    assert "Regression of size" in shown.out
    assert "held out" not in shown.out.replace("rows held out", "")
    quiet = subprocess.run(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert quiet.stderr == ""
    assert quiet.stdout.splitlines()[0] == shown.out.splitlines()[0]


def test_the_demonstration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from powersketch.cli import demo_command

    monkeypatch.setattr(demo_command, "_DEGREES", (2, 4))
    monkeypatch.setattr(demo_command, "_COMPONENTS", 64)
    assert main(["demo", "--folder", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for words in ("error, scikit-learn", "linear model", "gradient boosting", "Picture: "):
        assert words in out
    picture = (tmp_path / "powersketch-demo.svg").read_text(encoding="utf-8")
    assert picture.lstrip().startswith("<svg")
    assert "PolynomialCountSketch (scikit-learn)" in picture
    assert "diabetes" in (tmp_path / "powersketch-demo.html").read_text(encoding="utf-8")


def test_features_of_a_file(rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--kernel", "poly", "--degree", "3", "--n-components", "32", "--seed", "1"]
    stored = ["--save-model", "map.model"]
    assert main(["transform", "rows.npy", "features.npy", *options, *stored]) == 0
    assert "features.npy holds the features of all rows, 80 × 32." in capsys.readouterr().out
    sketch = powersketch.PolynomialSketch(3, n_components=32, random_state=1)
    np.testing.assert_array_equal(np.load("features.npy"), sketch.fit_transform(rows))
    assert main(["transform", "rows.npy", "again.npy", "--model", "map.model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 32
    assert Path("again.npy").read_bytes() == Path("features.npy").read_bytes()
    assert main(["transform", "rows.npy", "resumed.npy", *options, "--resume"]) == 0
    assert Path("resumed.npy").read_bytes() == Path("features.npy").read_bytes()
    assert main(["transform", "rows.npy", "small.npy", *options, "--dtype", "float32"]) == 0
    assert np.load("small.npy").dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rows.npy"], "Missing argument 'OUT'"),
        (["nothing.npy", "out.npy"], "nothing.npy is not a file"),
        (["rows.npy", "rows.npy"], "is the file that is read"),
        (["rows.npy", "out.txt"], "out.txt"),
        (["rows.npy", "no/out.npy"], "nothing can be written to no"),
        (["rows.npy", "out.npy", "--resume"], "--resume needs --seed"),
        (["rows.npy", "out.npy", "--fit-rows", "0"], "fit-rows=0"),
        (["rows.npy", "out.npy", "--dtype", "int8"], "int8"),
        (["table.csv", "out.npy"], "table.csv"),
        (["bad.npy", "out.npy"], "bad.npy, row 3, column number 1"),
        (["empty.npy", "out.npy"], "empty.npy has no rows or no columns"),
    ],
)
def test_features_that_cannot_be_had(
    rows: np.ndarray, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = rows.copy()
    bad[2, 1] = np.nan
    np.save("bad.npy", bad)
    np.save("empty.npy", bad[:0])
    before = sorted(os.listdir())
    assert main(["transform", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert sorted(os.listdir()) == before

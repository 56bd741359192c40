"""``powersketch fit`` and ``powersketch predict``, from a table to predictions and back."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import powersketch
from powersketch.cli.main import main
from powersketch.reports import automatic_model
from tests.cli.command_line import write_table

QUICK = ["--kernel", "linear", "--alpha", "1", "--seed", "0"]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pandas.DataFrame:
    """A table in the working directory, as table.csv."""
    monkeypatch.chdir(tmp_path)
    return pandas.read_csv(write_table(tmp_path / "table.csv"))


def lines(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


def test_the_automatic_model_from_file_to_predictions(
    table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "table.csv", "--target", "price", "--seed", "0"]) == 0
    captured = capsys.readouterr()
    assert "Regression of price from the rows of table.csv" in captured.out
    assert "It is a regression: its values are numbers, 60 different ones." in captured.out
    assert "models were tried" in captured.out
    assert "The model, fitted to all 60 rows, is table.model." in captured.out
    assert captured.err == ""
    assert sorted(os.listdir()) == ["table-report.html", "table.csv", "table.model"]
    page = Path("table-report.html").read_text(encoding="utf-8")
    for words in ("gradient boosting", "linear model", "colour: 3 categories", "TablePreparation"):
        assert words in page
    assert main(["predict", "table.model", "table.csv"]) == 0
    found = np.array([float(line["prediction"]) for line in lines(capsys.readouterr().out)])
    model = powersketch.load("table.model")
    np.testing.assert_array_equal(found, model.predict(table))
    assert np.corrcoef(found, table["price"])[0, 1] > 0.95


def test_the_code_on_the_page_does_the_same(table: pandas.DataFrame) -> None:
    assert main(["fit", "table.csv", "--target", "price", *QUICK]) == 0
    page = Path("table-report.html").read_text(encoding="utf-8")
    code = page.partition("<pre")[2].partition("<code>")[2].partition("</code>")[0]
    first = powersketch.load("table.model").predict(table)
    Path("table.model").unlink()
    names: dict[str, Any] = {}
    exec(code.replace("&#39;", "'").replace("&#34;", '"'), names)
    np.testing.assert_array_equal(names["model"].predict(table), first)
    np.testing.assert_array_equal(powersketch.load("table.model").predict(table), first)


def test_decimal_commas_between_semicolons(
    table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "table.csv", "--target", "price", *QUICK]) == 0
    first = powersketch.load("table.model").predict(table)
    table.to_csv("commas.csv", sep=";", decimal=",", index=False)
    assert main(["fit", "commas.csv", "--target", "price", *QUICK]) == 0
    assert "It is a regression" in capsys.readouterr().out
    np.testing.assert_array_equal(powersketch.load("commas.model").predict(table), first)
    page = Path("commas-report.html").read_text(encoding="utf-8")
    assert "read_csv(&#39;commas.csv&#39;, sep=&#39;;&#39;, decimal=&#39;,&#39;)" in page


def test_a_row_is_named_by_its_number_in_the_file(
    table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever rows are held out, and whichever have no target."""
    table.loc[50, "size"] = np.inf
    table.loc[::7, "price"] = np.nan
    table.to_csv("infinite.csv", index=False)
    assert main(["fit", "infinite.csv", "--target", "price", *QUICK]) == 2
    assert "infinite value in row 50 (the first is 0)" in capsys.readouterr().err


def test_classes_and_their_probabilities(
    table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "table.csv", "--target", "sold", "--drop", "price", *QUICK]) == 0
    assert "Classification of sold" in capsys.readouterr().out
    arguments = ["predict", "table.model", "table.csv", "--proba", "--output", "found.csv"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == ""
    found = lines(Path("found.csv").read_text())
    assert {line["prediction"] for line in found} == {"yes", "no"}
    total = sum(float(found[0][f"probability of {each}"]) for each in ("yes", "no"))
    assert total == pytest.approx(1.0)
    right = np.mean([line["prediction"] for line in found] == table["sold"])
    assert right > 0.9


def test_json_for_other_programs(
    table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "table.csv", "--target", "price", *QUICK, "--keep-sums", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "regression"
    assert found["scores"][0]["name"] == "powersketch"
    assert found["model"] == "table.model"
    assert main(["predict", "table.model", "table.csv", "--std", "--json"]) == 0
    predictions = json.loads(capsys.readouterr().out)
    assert len(predictions) == 60
    assert set(predictions[0]) == {"prediction", "std"}


def test_weights_several_targets_and_chosen_columns(
    table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = ["--target", "price", "--target", "size"]
    arguments = ["fit", "table.csv", *targets, "--weight", "weight", "--columns", "colour,day"]
    assert main([*arguments, *QUICK]) == 0
    model = powersketch.load("table.model")
    assert [*model.feature_names_in_] == ["colour", "day"]
    capsys.readouterr()
    assert main(["predict", "table.model", "table.csv"]) == 0
    assert [*lines(capsys.readouterr().out)[0]] == ["prediction 0", "prediction 1"]


def test_rows_without_a_target_are_left_out(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("table.csv"), gaps=True)
    assert main(["fit", "table.csv", "--target", "size", *QUICK, "--json"]) == 0
    assert main(["fit", "table.csv", "--target", "price", *QUICK]) == 0
    recipe = powersketch.load("table.model")[0].recipe_
    assert recipe[0].startswith("size: a number; where it is missing (6 rows)")


def test_every_parameter_is_within_reach(table: pandas.DataFrame) -> None:
    settings = ["--set", "tol=1e-7", "--set", "clip=None", "--set", "fit_intercept=False"]
    options = ["--alpha", "0.5", "--features", "exact", "--kernel", "rbf", "--jobs", "1"]
    more = ["--set", "kernel_params={'gamma': 0.25}", "--categorical", "weight"]
    assert main(["fit", "table.csv", "--target", "price", *settings, *options, *more]) == 0
    preparation, model = (step for _, step in powersketch.load("table.model").steps)
    assert (model.tol, model.clip, model.fit_intercept) == (1e-7, None, False)
    assert (model.alpha, model.features, model.kernel_params) == (0.5, "exact", {"gamma": 0.25})
    assert [*preparation.categorical] == ["weight"]


def test_every_parameter_of_the_preparation_is_within_reach(table: pandas.DataFrame) -> None:
    prepare = ["--prepare", "max_categories=2", "--prepare", "many_categories=hash"]
    assert main(["fit", "table.csv", "--target", "price", *QUICK, *prepare]) == 0
    model = powersketch.load("table.model")
    assert (model[0].max_categories, model[0].many_categories) == (2, "hash")
    np.testing.assert_array_equal(model.predict(table), model.predict(table[::-1])[::-1])


def test_other_encodings(table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    table["colour"] = table["colour"].str.replace("e", "é")
    table.to_csv("table.csv", index=False, encoding="cp1252")
    assert main(["fit", "table.csv", "--target", "price", *QUICK]) == 2
    assert "it is not a text in UTF-8" in capsys.readouterr().err
    encoded = ["--encoding", "cp1252"]
    assert main(["fit", "table.csv", "--target", "price", *QUICK, *encoded]) == 0
    assert main(["predict", "table.model", "table.csv", *encoded, "--output", "p.csv"]) == 0
    found = pandas.read_csv("p.csv")["prediction"]
    np.testing.assert_array_equal(found, powersketch.load("table.model").predict(table))


def test_a_page_that_cannot_be_written_leaves_no_model(
    table: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("powersketch.reports.results.ModelReport.save_html", full)
    assert main(["fit", "table.csv", "--target", "price", *QUICK]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: table.model cannot be written, as the system says: No space")
    assert os.listdir() == ["table.csv"]


def test_rows_of_numbers(table: pandas.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    X[:, 3] = X[:, 0] - X[:, 1]
    np.save("rows.npy", X)
    np.save("new.npy", X[:, :3])
    options = ["--kernel", "linear", "--alpha", "1e-6"]
    assert main(["fit", "rows.npy", "--target", "3", *options]) == 0
    capsys.readouterr()
    assert main(["predict", "rows.model", "new.npy"]) == 0
    found = np.array([float(line["prediction"]) for line in lines(capsys.readouterr().out)])
    assert np.abs(found - X[:, 3]).max() < 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "table.csv"], "Missing option '--target'"),
        (["fit", "table.csv", "--target", "prize"], "has no column 'prize'; its columns are size"),
        (["fit", "none.csv", "--target", "price"], "none.csv is not a file"),
        (["fit", "table.txt", "--target", "price"], "table.txt"),
        (
            ["fit", "table.csv", "--target", "price", "--columns", "price,size"],
            "'price' is given by --columns and by --target",
        ),
        (["fit", "table.csv", "--target", "price", "--drop", "price"], "more than once"),
        (["fit", "table.csv", "--target", "price", "--weight", "price"], "more than once"),
        (["fit", "table.csv", "--target", "price", "--weight", "colour"], "weights have to be"),
        (["fit", "table.csv", "--target", "price", "--set", "nonsense=1"], "has no parameter"),
        (["fit", "table.csv", "--target", "price", "--set", "tol"], "has no value"),
        (
            ["fit", "table.csv", "--target", "price", "--set", "alpha=1"],
            "by an option and by",
        ),
        (["fit", "table.csv", "--target", "price", "--alpha", "much"], "alpha=much is neither"),
        (["fit", "table.csv", "--target", "price", "--kernel", "matern"], "kernel='matern'"),
        (["fit", "table.csv", "--target", "price", "--held-out", "2"], "held_out=2.0"),
        (["fit", "table.csv", "--target", "price", "--task", "rank"], "task='rank' is unknown"),
        (["fit", "table.csv", "--target", "sold", "--task", "regression"], "target of numbers"),
        (["fit", "table.csv", "--target", "price", "--target", "sold"], "not one of numbers"),
        (["fit", "table.csv", "--target", "price", "--model", "table.csv"], "is the file that is"),
        (["fit", "table.csv", "--target", "price", "--model", "no/m"], "nothing can be written to"),
        (["fit", "table.csv", "--target", "price", "--categorical", "hue"], "no column 'hue'"),
        (["fit", "names.csv", "--target", "who"], "rows has a target of its own, such as 'n0'"),
        (["fit", "infinite.csv", "--target", "b"], "column 'b', which is to be predicted, has an"),
        (["predict", "table.csv", "table.csv"], "table.csv"),
        (["predict", "none.model", "table.csv"], "none.model is not a file"),
        (["predict", "good.model", "none.csv"], "none.csv is not a file"),
        (["predict", "good.model", "rows.npy"], "the model was fitted to a table"),
        (["predict", "good.model", "other.csv"], "no column"),
        (["predict", "good.model", "table.csv", "--proba"], "--proba is for classes"),
        (["predict", "good.model", "table.csv", "--std"], "powersketch fit --keep-sums"),
        (["predict", "good.model", "table.csv", "-o", "good.model"], "is the file that is read"),
        (["predict", "good.model", "table.csv", "-o", "a.csv", "--json"], "give one of them"),
        (["predict", "good.model", "table.csv", "-o", "a.parquet"], "a.parquet has a format"),
        (["predict", "plain.model", "empty.npy"], "empty.npy has no rows or no columns"),
        (["predict", "map.model", "rows.npy"], "PolynomialSketch, which predicts nothing"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(
    table: pandas.DataFrame,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fitted = automatic_model("regression", kernel="linear", alpha=1.0)
    powersketch.save(fitted.fit(table[["size", "colour"]], table["price"]), "good.model")
    np.save("rows.npy", np.ones((9, 2)) * np.arange(2))
    powersketch.save(powersketch.PolynomialSketch().fit(np.load("rows.npy")), "map.model")
    np.save("empty.npy", np.ones((0, 2)))
    plain = automatic_model("regression", table=False, kernel="linear", alpha=1.0)
    powersketch.save(plain.fit(np.eye(2), [0.0, 1.0]), "plain.model")
    Path("other.csv").write_text("a,b\n1,2\n3,4\n")
    Path("infinite.csv").write_text("a,b\n" + "".join(f"{k},{k}\n" for k in range(30)) + "1,inf\n")
    Path("names.csv").write_text("a,who\n" + "".join(f"{k},n{k}\n" for k in range(30)))
    Path("table.txt").write_text("1\n")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


def test_a_full_disk_is_a_failed_run(
    table: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device", "table.model")

    monkeypatch.setattr("powersketch.storage.save", full)
    assert main(["fit", "table.csv", "--target", "price", *QUICK]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert os.listdir() == ["table.csv"]

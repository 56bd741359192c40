"""``powersketch fit --dask``: the model of the command in memory, fitted where the blocks are."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas
import pytest

import powersketch
from powersketch.cli.main import main
from powersketch.distributed import files
from tests.cli.command_line import write_table
from tests.distributed.dask_data import many_rows_from, relative_difference

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
FIT = "--kernel gaussian --features sketch --n-components 32 --alpha 1 --seed 0 --set solver=gram"


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pandas.DataFrame:
    """A table in the working directory, as a text and as a folder of Parquet files."""
    monkeypatch.chdir(tmp_path)
    whole = pandas.read_csv(write_table(tmp_path / "table.csv", 300, gaps=True))
    Path("parts.parquet").mkdir()
    for number, start in enumerate(range(0, 300, 90)):
        whole[start : start + 90].to_parquet(f"parts.parquet/{number}.parquet")
    return whole


def fit(file: str, *more: str) -> int:
    return main(["fit", file, *FIT.split(), "--held-out", "0.1", *more])


@pytest.mark.parametrize(
    ("target", "others"), [("price", ["--weight", "weight", "--drop", "sold"]), ("sold", [])]
)
def test_the_model_is_that_of_rows_in_memory(
    client: Any, table: pandas.DataFrame, target: str, others: list[str], capsys: Any
) -> None:
    address = client.scheduler.address
    given = ["--target", target, *others]
    assert fit("table.csv", *given, "--model", "memory") == 0
    assert fit("parts.parquet", *given, "--model", "few", "--dask", address) == 0
    with many_rows_from(100):
        assert fit("parts.parquet", *given, "--model", "many", "--dask", address) == 0
    shown = capsys.readouterr().out
    assert "fitted to all rows by Dask (this report is that of 300 of them), is few" in shown
    models = {name: powersketch.load(name) for name in ("memory", "few", "many")}
    scores = {name: _scores(model, table) for name, model in models.items()}
    np.testing.assert_array_equal(scores["few"], scores["memory"])
    assert relative_difference(scores["memory"], scores["many"]) < 0.2


def _scores(model: Any, table: pandas.DataFrame) -> Any:
    classifies = hasattr(model[-1], "decision_function")
    return model.decision_function(table) if classifies else model.predict(table)


@pytest.mark.parametrize(
    ("where", "code", "message"),
    [
        ("somewhere", 2, "Dask at 'somewhere' is unknown; allowed are local"),
        ("tcp://127.0.0.1:1", 1, "no scheduler of Dask answers at tcp://127.0.0.1:1"),
    ],
)
def test_clusters_that_are_not_there(where: str, code: int, message: str, capsys: Any) -> None:
    with mock.patch.object(files, "_SECONDS_TO_CONNECT", 0.2):
        assert fit("table.csv", "--target", "price", "--dask", where) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("table.model").exists()


def test_files_that_dask_does_not_read(client: Any, capsys: Any) -> None:
    np.save("rows.npy", np.ones((30, 3)))
    assert fit("rows.npy", "--target", "0", "--dask", client.scheduler.address) == 2
    assert "allowed are .csv, .tsv and .parquet" in " ".join(capsys.readouterr().err.split())

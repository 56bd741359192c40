"""Rows from files of every format, and what is refused."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import io, sparse
from sklearn.datasets import dump_svmlight_file

from powersketch.cli.files import read_rows

X = np.array([[1.5, 0.0, -2.0], [0.0, 4.0, 1e-3], [7.0, 0.0, 0.25]])


def dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def write(path: Path) -> Path:
    """Write X in the format that the name tells."""
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X)
    elif path.suffix in (".csv", ".tsv"):
        np.savetxt(path, X, delimiter="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".mtx":
        io.mmwrite(path, sparse.coo_array(X))
    else:
        dump_svmlight_file(X, np.array([1, 0, 1]), str(path), zero_based=False)
    return path


@pytest.mark.parametrize(
    "suffix", [".npy", ".npz", ".csv", ".tsv", ".svm", ".libsvm", ".svmlight", ".mtx", ".NPY"]
)
def test_every_format(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"rows{suffix.lower()}").rename(tmp_path / f"rows{suffix}")
    np.testing.assert_array_equal(dense(read_rows(path)), X)
    np.testing.assert_array_equal(dense(read_rows(path, "1")), X[:, [0, 2]])
    np.testing.assert_array_equal(dense(read_rows(path, "-1")), X[:, :2])


def test_sparse_archives_stay_sparse(tmp_path: Path) -> None:
    for format in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / "rows.npz", sparse.coo_array(X).asformat(format))
        rows = read_rows(tmp_path / "rows.npz")
        assert rows.format == "csr"
        np.testing.assert_array_equal(rows.toarray(), X)


def test_a_dense_matrix_market_file(tmp_path: Path) -> None:
    io.mmwrite(tmp_path / "rows.mtx", X)
    np.testing.assert_array_equal(read_rows(tmp_path / "rows.mtx"), X)


def test_an_archive_of_several_arrays_has_one_named_x(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(path, y=np.arange(3), X=X)
    np.testing.assert_array_equal(read_rows(path), X)
    np.savez(path, train=X, test=X)
    with pytest.raises(ValueError, match=r"holds the arrays train, test; allowed is one"):
        read_rows(path)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ('"a, or b",c\n"1",2\n3,4\n', [[1, 2], [3, 4]]),
        (",0,1\n7,1,2\n8,3,4\n", [[7, 1, 2], [8, 3, 4]]),
        ("a;b\n1;2\n3;4\n", [[1, 2], [3, 4]]),
        ("\ufeff1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1e3,-2.5\n", [[1000, -2.5]]),
        ("x\n1\n2\n", [[1], [2]]),
        ("a,b\n1,2\n\n3,4\n\n", [[1, 2], [3, 4]]),
    ],
)
def test_headers_and_delimiters(tmp_path: Path, text: str, rows: list[list[float]]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_rows(path), rows)


def test_the_target_has_a_name_and_may_be_a_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("width,kind,height\n1,setosa,2\n3,virginica,4\n")
    np.testing.assert_array_equal(read_rows(path, "kind"), [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"columns that are not numbers: kind; .*--target"):
        read_rows(path)
    with pytest.raises(ValueError, match="no column 'colour'; the columns are width, kind, height"):
        read_rows(path, "colour")
    path.write_text("1,setosa,2\n3,virginica,4\n")
    np.testing.assert_array_equal(read_rows(path, "1"), [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="not numbers: 1;"):
        read_rows(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.csv", b"a,b\n1,2\n3,four\n", "not a table of numbers.*'four'"),
        ("rows.csv", b"a,b\n1,2\n3\n", "not a table of numbers"),
        ("rows.csv", b"a,b\n1,\n", "columns that are not numbers: b"),
        ("rows.csv", b"\xff\xfe1\x00", "not a text in UTF-8"),
        ("rows.txt", b"1 2", r"unknown format; allowed are .npy, .npz, .csv"),
        ("rows.npy", b"nonsense", r"rows.npy cannot be read as \.npy: "),
        ("rows.npz", b"nonsense", r"rows.npz cannot be read as \.npz: "),
        ("rows.svm", b"nonsense", r"rows.svm cannot be read as \.svm: "),
        ("rows.mtx", b"nonsense", r"rows.mtx cannot be read as \.mtx: "),
    ],
)
def test_refusals(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_rows(tmp_path / name)


def test_many_names_are_shortened(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(",".join(f"c{number}" for number in range(30)) + "\n" + ",".join("x" * 30))
    with pytest.raises(ValueError, match=r"c0, .*, c9, … \(30 in all\)"):
        read_rows(path)


def test_no_file_and_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a file"):
        read_rows(tmp_path / "nothing.npy")
    with pytest.raises(ValueError, match="is not a file"):
        read_rows(tmp_path)
    np.save(tmp_path / "vector.npy", np.ones(3))
    with pytest.raises(ValueError, match="holds an array with 1 dimensions; allowed are 2"):
        read_rows(tmp_path / "vector.npy", "0")


def test_code_in_files_is_not_run(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"cannot be read as .*Python objects"):
        read_rows(tmp_path / "rows.npy")


@pytest.mark.parametrize("text", ["", "a,b\n"])
def test_a_file_without_rows_has_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    assert read_rows(tmp_path / "rows.csv").shape[0] == 0


class ParquetTable:
    """The part of an Arrow table that is used."""

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self.columns = columns

    @property
    def column_names(self) -> list[str]:
        return [*self.columns]

    def column(self, name: str) -> Any:
        values = self.columns[name]

        class Column:
            def to_numpy(self) -> np.ndarray:
                return values

        return Column()


def test_parquet_by_column_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {
        "a": np.array([1, 2]),
        "b": np.array(["x", "y"], dtype=object),
        "c": np.array([0.5, 1.5], dtype=np.float32),
    }
    parquet, arrow = ModuleType("pyarrow.parquet"), ModuleType("pyarrow")
    parquet.read_table = lambda path: ParquetTable(columns)  # type: ignore[attr-defined]
    arrow.parquet = parquet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyarrow", arrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    path = tmp_path / "rows.parquet"
    path.touch()
    np.testing.assert_array_equal(read_rows(path, "b"), [[1, 0.5], [2, 1.5]])
    with pytest.raises(ValueError, match="not numbers: b"):
        read_rows(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without_arrow(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return load(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_arrow)
    (tmp_path / "rows.parquet").touch()
    with pytest.raises(ValueError, match="pip install pyarrow"):
        read_rows(tmp_path / "rows.parquet")

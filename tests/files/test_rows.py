"""Rows from files of every format, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import io, sparse
from sklearn.datasets import dump_svmlight_file

from powersketch.exceptions import InputError
from powersketch.files import read_rows

X = np.array([[1.5, 0.0, -2.0], [0.0, 4.0, 1e-3], [7.0, 0.0, 0.25]])


def dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def write(path: Path, matrix: np.ndarray = X) -> Path:
    """Write the matrix in the format that the name tells."""
    if path.suffix == ".npy":
        np.save(path, matrix)
    elif path.suffix == ".npz":
        np.savez(path, matrix)
    elif path.suffix in (".csv", ".tsv"):
        np.savetxt(path, matrix, delimiter="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".mtx":
        io.mmwrite(path, sparse.coo_array(matrix))
    elif path.suffix == ".parquet":
        parquet.write_table(pa.table([*matrix.T], names=["a", "b", "c"]), path)
    else:
        dump_svmlight_file(matrix, np.array([1, 0, 1]), str(path), zero_based=False)
    return path


@pytest.mark.parametrize(
    "suffix",
    [".npy", ".npz", ".csv", ".tsv", ".svm", ".libsvm", ".svmlight", ".mtx", ".parquet", ".NPY"],
)
def test_every_format(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"rows{suffix.lower()}").rename(tmp_path / f"rows{suffix}")
    np.testing.assert_array_equal(dense(read_rows(path)), X)
    np.testing.assert_array_equal(dense(read_rows(path, "1")), X[:, [0, 2]])
    np.testing.assert_array_equal(dense(read_rows(path, "-1")), X[:, :2])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.txt", b"1 2", r"unknown format; allowed are .csv, .tsv, .npy, .npz"),
        ("rows.npy", b"nonsense", r"rows.npy cannot be read as \.npy: "),
        ("rows.npz", b"nonsense", r"rows.npz cannot be read as \.npz: "),
        ("rows.svm", b"nonsense", r"rows.svm, line 1: 'nonsense' is no number"),
        ("rows.mtx", b"nonsense", "rows.mtx, line 1: it is not the first line"),
    ],
)
def test_refusals(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_rows(tmp_path / name)


def test_no_file_and_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a file"):
        read_rows(tmp_path / "nothing.npy")
    with pytest.raises(ValueError, match="is not a file"):
        read_rows(tmp_path)
    np.save(tmp_path / "vector.npy", np.ones(3))
    with pytest.raises(ValueError, match="holds an array with 1 dimensions; allowed are 2"):
        read_rows(tmp_path / "vector.npy", "0")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mtx", ".svm", ".csv", ".parquet"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite_have_a_place(
    tmp_path: Path, suffix: str, value: float
) -> None:
    bad = X.copy()
    bad[1, 2] = value
    path = tmp_path / f"rows{suffix}"
    if suffix == ".svm":
        path.write_text(f"1 1:2\n1 3:{value}\n")
    else:
        write(path, bad)
    place = "line" if suffix in (".mtx", ".svm", ".csv") else r"row 2, column number 2"
    with pytest.raises(InputError, match=rf"rows\{suffix}, {place}.* not finite"):
        read_rows(path)


@pytest.mark.parametrize("suffix", [".npz", ".mtx", ".svm"])
def test_a_target_of_a_very_wide_matrix(tmp_path: Path, suffix: str) -> None:
    """No list of all columns is made, which would be longer than the memory."""
    wide = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [0, 1, 10**12])), shape=(2, 10**12 + 1))
    path = tmp_path / f"rows{suffix}"
    if suffix == ".npz":
        sparse.save_npz(path, wide)
    elif suffix == ".mtx":
        io.mmwrite(path, wide)
    else:
        path.write_text(f"0 1:1 2:2\n0 {10**12 + 1}:3\n")
    rows = read_rows(path, "1")
    assert rows.shape == (2, 10**12)
    np.testing.assert_array_equal(rows.tocoo().col, [0, 10**12 - 1])
    np.testing.assert_array_equal(rows.data, [1.0, 3.0])


def test_a_header_without_effect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"header=True has no effect for \.npy files"):
        read_rows(write(tmp_path / "rows.npy"), header=True)

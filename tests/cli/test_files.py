"""Rows from files of every format, and what is refused."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import io, sparse
from sklearn.datasets import dump_svmlight_file

from powersketch.cli.files import read_rows
from powersketch.exceptions import InputError

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


def test_sparse_archives_stay_sparse(tmp_path: Path) -> None:
    for format in ("csr", "csc", "coo", "bsr", "dia"):
        sparse.save_npz(tmp_path / "rows.npz", sparse.coo_array(X).asformat(format))
        rows = read_rows(tmp_path / "rows.npz")
        assert rows.format == "csr"
        np.testing.assert_array_equal(rows.toarray(), X)


@pytest.mark.parametrize(
    ("format", "changes", "message"),
    [
        ("csr", {"indices": [0, 2, 1, 2, 0, 99]}, "entries outside of its 3 columns"),
        ("csr", {"indices": [0, 2, 1, 2, 0, -1]}, "entries outside of its 3 columns"),
        ("csr", {"indptr": [0, 4, 2, 6]}, "bounds do not divide 6 entries into 3 parts"),
        ("csr", {"indptr": [0, 6]}, "bounds do not divide 6 entries into 3 parts"),
        ("csr", {"data": [1.0]}, "arrays do not have the same length"),
        ("csc", {"shape": [2, 3]}, "entries outside of its 2 rows"),
        ("csc", {"shape": [10**15, 3]}, "which no file of this size can have"),
        ("coo", {"row": [0, 0, 1, 1, 2, 3]}, "entries outside of its 3 rows"),
        ("coo", {"row": [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]}, "row is not a list of integers"),
        ("bsr", {"shape": [4, 4]}, "bounds do not divide"),
        ("dia", {"offsets": [0, 0, 1, 2]}, "diagonals have the shape"),
        ("csr", {"format": "lil"}, "its format is 'lil'; allowed are csr, csc, coo, bsr, dia"),
    ],
)
def test_sparse_archives_with_wrong_indices_are_refused(
    tmp_path: Path, format: str, changes: dict[str, Any], message: str
) -> None:
    """SciPy's compiled code does not check them, and would write outside of its arrays."""
    path = tmp_path / "rows.npz"
    sparse.save_npz(path, sparse.coo_array(X).asformat(format))
    with np.load(path) as archive:
        arrays = {**archive, **{name: np.array(value) for name, value in changes.items()}}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=rf"rows\.npz cannot be read as \.npz: .*{message}"):
        read_rows(path)


def test_an_archive_larger_than_the_memory_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, np.zeros((1000, 1000)))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr("powersketch.cli.array_files.available_memory", lambda: 10**6)
    with pytest.raises(InputError, match=r"needs 7\.63 MiB of memory, and 977 KiB are available"):
        read_rows(path)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.npy")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match="72 bytes, and 64 follow: it is cut off or damaged"):
        read_rows(path)


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


def test_the_target_has_a_name_and_may_be_a_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("width,kind,height\n1,setosa,2\n3,virginica,4\n")
    np.testing.assert_array_equal(read_rows(path, "kind"), [[1, 2], [3, 4]])
    with pytest.raises(InputError, match=r"line 2, column 'kind': 'setosa' is no .*--target"):
        read_rows(path)
    with pytest.raises(ValueError, match="no column 'colour'; the columns are width, kind, height"):
        read_rows(path, "colour")
    path.write_text("1,setosa,2\n3,virginica,4\n")
    np.testing.assert_array_equal(read_rows(path, "1"), [[1, 2], [3, 4]])
    with pytest.raises(InputError, match=r"line 1, column number 1 \(the first is 0\): 'setosa'"):
        read_rows(path)


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


def test_junk_is_not_said_to_be_loaded_unsafely(tmp_path: Path) -> None:
    for name in ("rows.npy", "rows.npz"):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(InputError) as caught:
            read_rows(tmp_path / name)
        assert name in str(caught.value)
        assert not any(word in str(caught.value) for word in ("pickle", "unsafe", "trust"))


def test_many_names_are_shortened(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    names = ",".join(f"c{number}" for number in range(30))
    path.write_text(f"{names}\n{','.join('x' * 30)}")
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


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "a,b\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=r"rows\.csv has (no|0) rows"):
        read_rows(tmp_path / "rows.csv")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_an_array_without_entries_is_refused(tmp_path: Path, shape: tuple[int, int]) -> None:
    np.save(tmp_path / "rows.npy", np.ones(shape))
    with pytest.raises(InputError, match=rf"has {shape[0]} rows and {shape[1]} columns to use"):
        read_rows(tmp_path / "rows.npy")


def test_the_only_column_cannot_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x\n1\n2\n")
    with pytest.raises(InputError, match="0 columns to use"):
        read_rows(tmp_path / "rows.csv", "x")


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


def test_more_arrays_than_one_in_a_file_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "rows.npy").open("wb") as stream:
        np.save(stream, X)
        np.save(stream, X)
    with pytest.raises(InputError, match="72 bytes, and 272 follow"):
        read_rows(tmp_path / "rows.npy")


def test_a_header_without_effect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"header=True has no effect for \.npy files"):
        read_rows(write(tmp_path / "rows.npy"), header=True)


@pytest.mark.parametrize(
    "text",
    [
        "1 1:2:3 4",
        "1 1:2 1:3",
        "1 2:2 1:3",
        "1 1:2 3",
        "1:2 3:4",
        "1 1:2_0",
        "1 -1:2",
        "1 1.0:2",
        "1 99999999999999999999:1",
        "1,2 1:1",
    ],
)
def test_lines_of_svmlight_that_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:1\n# a comment\n{text}\n")
    with pytest.raises(InputError, match=r"rows\.svm, line 3: "):
        read_rows(path)


def test_svmlight_with_comments_queries_and_zero_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("# first\n1 qid:7 1:1 3:-2.5 # x:y\n\n-1\n+1 2:1e-3\n")
    np.testing.assert_array_equal(dense(read_rows(path)), [[1, 0, -2.5], [0, 0, 0], [0, 1e-3, 0]])
    path.write_text("1 0:1 2:2\n")
    np.testing.assert_array_equal(dense(read_rows(path)), [[1, 0, 2]])


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.coo_array])
def test_halves_of_symmetric_matrices(tmp_path: Path, symmetry: str, layout: Any) -> None:
    sign = 1.0 if symmetry == "symmetric" else -1.0
    lower = np.tril(np.arange(1.0, 10.0).reshape(3, 3), k=0 if sign > 0 else -1)
    matrix = lower + sign * np.tril(lower, k=-1).T
    io.mmwrite(tmp_path / "rows.mtx", layout(matrix), symmetry=symmetry)
    np.testing.assert_array_equal(dense(read_rows(tmp_path / "rows.mtx")), matrix)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("2 2 2\n1 1 0.5x\n2 2 1\n", 3),
        ("2 2 2\n1 1 0,5\n2 2 1\n", 3),
        ("2 2 2\n1 1 5\n2 2 1 7\n", 4),
        ("2 2 2\n1 1 5\n1 1 1\n", 4),
        ("2 2 2\n1 1 5\n", 2),
        ("2 2 1\n1 1 5\n2 2 1\n", 2),
        ("2 2 1\n0 1 5\n", 3),
        ("2 2 1\n1 3 5\n", 3),
        ("2 -2 1\n1 1 5\n", 2),
        ("999999999999 2 1\n1 1 5\n", 2),
        ("2 2 999999999999\n1 1 5\n", 2),
    ],
)
def test_entries_of_matrix_market_that_are_refused(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "rows.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n{text}")
    with pytest.raises(InputError, match=rf"rows\.mtx, line {line}: "):
        read_rows(path)


def test_parquet_by_column_names(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    path = folder / "rows.parquet"
    columns = [pa.array([1, 2]), pa.array(["x", "y"]), pa.array([0.5, 1.5], pa.float32())]
    parquet.write_table(pa.table(columns, names=["a", "b", "c"]), path)
    np.testing.assert_array_equal(read_rows(path, "b"), [[1, 0.5], [2, 1.5]])
    with pytest.raises(InputError, match="not numbers: b"):
        read_rows(path)


def test_parquet_columns_of_the_same_name_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = [pa.array([1, 2]), pa.array([3, None]), pa.array([5, 6])]
    parquet.write_table(pa.table([columns[0], columns[2]], names=["a", "a"]), path)
    np.testing.assert_array_equal(read_rows(path), [[1, 5], [2, 6]])
    with pytest.raises(InputError, match="2 columns are called 'a', numbers 0, 1"):
        read_rows(path, "a")
    parquet.write_table(pa.table(columns, names=["a", "b", "c"]), path)
    with pytest.raises(InputError, match="row 2, column number 1"):
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

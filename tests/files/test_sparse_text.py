"""Matrix Market and SVMlight: what is read, what is refused, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io, sparse

from powersketch.exceptions import InputError
from powersketch.files import read_rows
from tests.files.test_rows import X, dense


def test_a_dense_matrix_market_file(tmp_path: Path) -> None:
    io.mmwrite(tmp_path / "rows.mtx", X)
    np.testing.assert_array_equal(read_rows(tmp_path / "rows.mtx"), X)


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

"""NumPy's and SciPy's files: headers and indices are checked, and nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from powersketch.exceptions import InputError
from powersketch.files import read_rows
from tests.files.test_rows import X, write


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
    monkeypatch.setattr("powersketch.files.array_files.available_memory", lambda: 10**6)
    with pytest.raises(InputError, match=r"needs 7\.63 MiB of memory, and 977 KiB are available"):
        read_rows(path)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.npy")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match="72 bytes, and 64 follow: it is cut off or damaged"):
        read_rows(path)


def test_an_archive_of_several_arrays_has_one_named_x(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(path, y=np.arange(3), X=X)
    np.testing.assert_array_equal(read_rows(path), X)
    np.savez(path, train=X, test=X)
    with pytest.raises(ValueError, match=r"holds the arrays train, test; allowed is one"):
        read_rows(path)


def test_junk_is_not_said_to_be_loaded_unsafely(tmp_path: Path) -> None:
    for name in ("rows.npy", "rows.npz"):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(InputError) as caught:
            read_rows(tmp_path / name)
        assert name in str(caught.value)
        assert not any(word in str(caught.value) for word in ("pickle", "unsafe", "trust"))


def test_code_in_files_is_not_run(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"cannot be read as .*Python objects"):
        read_rows(tmp_path / "rows.npy")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_an_array_without_entries_is_refused(tmp_path: Path, shape: tuple[int, int]) -> None:
    np.save(tmp_path / "rows.npy", np.ones(shape))
    with pytest.raises(InputError, match=rf"has {shape[0]} rows and {shape[1]} columns to use"):
        read_rows(tmp_path / "rows.npy")


def test_more_arrays_than_one_in_a_file_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "rows.npy").open("wb") as stream:
        np.save(stream, X)
        np.save(stream, X)
    with pytest.raises(InputError, match="72 bytes, and 272 follow"):
        read_rows(tmp_path / "rows.npy")

"""Rows by blocks from every format, outputs that resume with the same bits, tables as they are."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import pytest
import zarr
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from powersketch import PolynomialSketch, save
from powersketch.exceptions import InputError
from powersketch.files import (
    open_rows,
    open_sink,
    read_rows,
    read_table,
    reading_code,
    table_blocks,
    unbuffered,
)
from powersketch.files import transform_file as transform
from powersketch.files.unbuffered import PAGE, UnbufferedFile, aligned_empty
from tests.hostile import killed_streams

SUFFIXES = [".npy", ".npz", ".csv", ".svm", ".parquet", ".feather", ".h5", ".zarr"]


def rows(count: int = 50) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, 4))


def write(path: Path, X: np.ndarray) -> Path:
    frame = pandas.DataFrame(X, columns=[*"abcd"])
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X=X)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".svm":
        dump_svmlight_file(X, np.zeros(len(X)), str(path), zero_based=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=7)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["X"] = X
    else:
        zarr.save_array(str(path), X)
    return path


def dense(block: Any) -> np.ndarray:
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_blocks_are_the_rows(suffix: str, tmp_path: Path) -> None:
    X = rows()
    source = open_rows(write(tmp_path / f"rows{suffix}", X))
    assert source.shape == (None if suffix == ".csv" else 50, 4)
    blocks = [dense(block) for block in source.blocks(12)]
    assert [len(block) for block in blocks] == [12, 12, 12, 12, 2]
    np.testing.assert_allclose(np.concatenate(blocks), X, rtol=1e-14)
    later = [dense(block) for block in source.blocks(12, 24)]
    np.testing.assert_array_equal(np.concatenate(later), np.concatenate(blocks[2:]))
    np.testing.assert_array_equal(dense(read_rows(source.path)), np.concatenate(blocks))
    rest = open_rows(source.path, "1")
    np.testing.assert_allclose(dense(next(rest.blocks(50))), X[:, [0, 2, 3]], rtol=1e-14)


def test_columns_first(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.asfortranarray(rows()))
    blocks = [*open_rows(tmp_path / "rows.npy").blocks(9)]
    np.testing.assert_array_equal(np.concatenate(blocks), rows())


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".zarr"])
def test_outputs_appear_when_they_are_complete(suffix: str, tmp_path: Path) -> None:
    X, path = rows(), tmp_path / f"out{suffix}"
    with open_sink(path, (50, 4), np.float64) as sink:
        for start in range(0, 50, 20):
            sink.write(X[start : start + 20])
            assert not path.exists()
        sink.commit()
    np.testing.assert_array_equal(read_rows(path), X)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_failed_run_leaves_nothing_behind(suffix: str, tmp_path: Path) -> None:
    X = rows()
    X[33, 2] = np.nan
    source = open_rows(write(tmp_path / "rows.npy", X))
    sketch = PolynomialSketch(random_state=0).fit(rows())
    with pytest.raises(InputError, match=r"rows\.npy, row 34, column number 2"):
        transform(sketch, source, tmp_path / f"out{suffix}")
    assert [*tmp_path.iterdir()] == [source.path]


def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    X = rows()
    sink = open_sink(tmp_path / "a.npy", (50, 4), X.dtype)
    sink.write(X[:20])
    sink.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    with pytest.raises(InputError, match="is of another run"):
        open_sink(tmp_path / "a.npy", (50, 4), X.dtype, run="other", resume=True)
    with open_sink(tmp_path / "a.npy", (50, 4), X.dtype, resume=True) as sink:
        assert sink.rows == 20
        sink.write(X[20:])
        sink.commit()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), X)


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    with open_sink(tmp_path / "a.npy", (5, 4), np.float64) as sink:
        with pytest.raises(InputError, match="another process is writing"):
            open_sink(tmp_path / "a.npy", (5, 4), np.float64)
        sink.discard()


@pytest.mark.parametrize(
    "unknown",
    [
        {},
        {"_FORGOTTEN": 1 << 20},  # refused when it is first tried, as by an older system
        {"_FORGOTTEN": None},
        {"_FORGOTTEN": None, "_DIRECT": None},
    ],
)
def test_any_part_of_a_file(
    unknown: dict[str, int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the cache of files, or through it where a system knows no other way."""
    for name, value in unknown.items():
        monkeypatch.setattr(unbuffered, name, value)
    content = np.random.default_rng(0).integers(0, 256, 5 * PAGE + 1234, dtype=np.uint8)
    path = tmp_path / "a.bin"
    file = UnbufferedFile(path, os.O_RDWR | os.O_CREAT)
    aligned = aligned_empty(content.shape, np.uint8)
    aligned[:] = content
    file.write(aligned[: 2 * PAGE], 0)
    file.write(aligned[3 * PAGE :], 3 * PAGE)
    file.write(content[2 * PAGE : 3 * PAGE], 2 * PAGE)
    assert path.read_bytes() == content.tobytes()
    for start, size in [(0, 1), (128, 4 * PAGE), (PAGE - 1, 2), (0, content.size), (PAGE, 0)]:
        found, before = file.read(start, size)
        np.testing.assert_array_equal(found[before : before + size], content[start : start + size])
    os.truncate(path, 3 * PAGE + 7)
    with pytest.raises(ValueError, match="it became shorter"):
        file.read(128, content.size - 128)
    file.close()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse longer files, as it does where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", killed_streams.SUFFIXES)
@pytest.mark.parametrize("late", [False, True])
def test_a_full_disk_leaves_nothing_behind(
    suffix: str, late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether rows have no room, or only what is made of them in the end."""
    source = open_rows(write(tmp_path / "rows.npy", rows(4000)))
    sketch = PolynomialSketch(random_state=0).fit(rows())
    if late:
        monkeypatch.setattr(UnbufferedFile, "sync", _no_room)
    limit = files_of_at_most(1 << 30 if late else 1 << 20)
    with pytest.raises(OSError, match=rf"out\{suffix} cannot be written"), limit:
        transform(sketch, source, tmp_path / f"out{suffix}")
    assert [*tmp_path.iterdir()] == [source.path]


def _no_room(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_model_that_a_disk_has_no_room_for(tmp_path: Path) -> None:
    sketch = PolynomialSketch(2, random_state=0).fit(rows())
    save(sketch, tmp_path / "a.model")
    whole = (tmp_path / "a.model").read_bytes()
    with pytest.raises(OSError, match=r"a\.model cannot be written"), files_of_at_most(100):
        save(sketch, tmp_path / "a.model")
    assert (tmp_path / "a.model").read_bytes() == whole
    assert [*tmp_path.iterdir()] == [tmp_path / "a.model"]


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"allowed are \.npy, \.npz"):
        open_sink(tmp_path / "a.txt", (5, 4), np.float64)
    with pytest.raises(InputError, match="are free in its folder"):
        open_sink(tmp_path / "a.npy", (1 << 45, 4), np.float64)
    source = open_rows(write(tmp_path / "rows.npy", rows()))
    with pytest.raises(InputError, match="is the file that is read"):
        transform(PolynomialSketch().fit(rows()), source, source.path)
    assert [*tmp_path.iterdir()] == [source.path]


@pytest.mark.parametrize("suffix", killed_streams.SUFFIXES)
def test_killed_runs_resume_with_the_same_bits(suffix: str, tmp_path: Path) -> None:
    """One kill each; ``python -m tests.hostile.killed_streams`` takes more of them."""
    assert killed_streams.run(tmp_path, suffix, 1, seed=0, longest=0.05)[1] == ""


def _text(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_tables_as_they_are(tmp_path: Path) -> None:
    text = '# made by hand\r\nname;size;"what it\nis"\r\nA;1.5;x\r\n\r\n# half\r\n"B;b";;y\r\n'
    frame = read_table(_text(tmp_path / "a.csv", text, "utf-8-sig"))
    assert [*frame.columns] == ["name", "size", "what it\nis"]
    assert frame["name"].tolist() == ["A", "B;b"]
    assert frame["size"].isna().tolist() == [False, True]
    assert [len(block) for block in table_blocks(tmp_path / "a.csv", 1)] == [1, 1]
    assert [*read_table(tmp_path / "a.csv", columns=["size"]).columns] == ["size"]


def test_decimal_commas_where_no_number_has_a_point(tmp_path: Path) -> None:
    text = "a;b;c\n1;x, y;2,5\n2;1,5;-3\n"
    frame = read_table(_text(tmp_path / "a.csv", text))
    assert frame["b"].tolist() == ["x, y", "1,5"]
    assert frame["c"].tolist() == [2.5, -3.0]
    mixed = read_table(_text(tmp_path / "b.csv", text.replace("-3", "3.5")))
    assert mixed["c"].tolist() == ["2,5", "3.5"]


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.csv", "a,b\n1,2\n", "pandas.read_csv('a.csv')"),
        ("a.tsv", "a\tb\n1\t2\n", "pandas.read_csv('a.tsv', sep='\\t')"),
        ("a.csv", "# x\na;b\n1;2,5\n", "('a.csv', sep=';', decimal=',', skiprows=1)"),
        ("a.csv", "1,2\n3,4\n", "('a.csv', header=None).rename(columns=str)"),
    ],
)
def test_code_that_reads_the_same(name: str, text: str, code: str, tmp_path: Path) -> None:
    path = _text(tmp_path / name, text)
    assert reading_code(path).endswith(code)
    given = reading_code(path).replace(repr(name), repr(str(path)))
    pandas.testing.assert_frame_equal(eval(given, {"pandas": pandas}), read_table(path))


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    path = _text(tmp_path / "a.csv", "stadt,zahl\nKöln,1\nÜlm,2\n", encoding)
    given = None if encoding == "utf-16" else encoding
    assert read_table(path, encoding=given)["stadt"].tolist() == ["Köln", "Ülm"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\nx,1\ny\n", "a.csv, line 3: it has 1 cell and line 1 has 2"),
        ("a,b\nx,1\ny,2,3\n", "a.csv, line 3: it has 3 cells and line 1 has 2"),
        ("a,a\nx,1\n", "several columns that are called 'a'"),
        ("a,b\n", "a.csv has no rows"),
    ],
)
def test_bad_tables_are_refused_by_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_table(_text(tmp_path / "a.csv", text))


def test_files_that_are_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.csv, line 2: it is not a text in UTF-8"):
        read_table(_text(tmp_path / "a.csv", "a,b\nÖ,1\n", "cp1252"))
    with pytest.raises(InputError, match="encoding='nothing' is unknown"):
        read_table(tmp_path / "a.csv", encoding="nothing")
    with pytest.raises(InputError, match="has no column 'z'"):
        read_table(_text(tmp_path / "b.csv", "a,b\nx,1\n"), columns=["z"])


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_tables_of_columns(suffix: str, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    getattr(frame, f"to_{suffix[1:]}")(tmp_path / f"a{suffix}")
    assert read_table(tmp_path / f"a{suffix}")["a"].tolist() == [1, 2, 3]
    assert [len(block) for block in table_blocks(tmp_path / f"a{suffix}", 2)] == [2, 1]


def test_arrays_packed_by_pickle_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "a.zarr", rows())
    described = folder / "zarr.json"
    described.write_text(described.read_text().replace('"zstd"', '"pickle"'))
    with pytest.raises(InputError, match="packed by 'pickle'"):
        open_rows(folder)

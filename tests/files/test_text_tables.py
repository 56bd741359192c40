"""Tables of text: what is read, what is refused, and where."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from powersketch.exceptions import InputError
from powersketch.files import read_rows


def table(tmp_path: Path, text: str, name: str = "rows.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    return path


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1,2\n3,4", [[1, 2], [3, 4]]),
        ("1,2\n", [[1, 2]]),
        ("5", [[5]]),
        ('"a, or b",c\n"1",2\n3,4\n', [[1, 2], [3, 4]]),
        ("a;b\n1;2\n3;4\n", [[1, 2], [3, 4]]),
        ("a, or b;c\n1;2\n3;4\n", [[1, 2], [3, 4]]),
        ("a;b\n1,5;2\n-3e0;4,25e1\n", [[1.5, 2], [-3, 42.5]]),
        ("a\tb\n1\t2\n3\t4,5\n", [[1, 2], [3, 4.5]]),
        ("a\tb\n1\t2\n3\t4\n", [[1, 2], [3, 4]]),
        ("\ufeff1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
        ("1,2\r3,4\r", [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1e3,-2.5\n", [[1000, -2.5]]),
        ("x\n1\n2\n", [[1], [2]]),
        ("x\n1\n2\n\n  \n", [[1], [2]]),
        ("a,b\n1,2\n\n3,4\n\n", [[1, 2], [3, 4]]),
        ("a,b\n\n1,2\n   \n3,4\n\n", [[1, 2], [3, 4]]),
        ("# made today\na,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("# made today\n\n#, by me\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("# a,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("a,a\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("Na,Mg\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        (' 1 , "2"\n3,4\n', [[1, 2], [3, 4]]),
        ('"a\nand b",c\n1,2\n', [[1, 2]]),
    ],
)
def test_what_is_read(
    tmp_path: Path, text: str, rows: list[list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    np.testing.assert_array_equal(read_rows(table(tmp_path, text)), rows)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        # By write.table of R, by write.csv of R, by to_csv of pandas.
        '"a","b"\n"Mazda RX4",1,2\n"Datsun 710",3,4\n',
        '"","a","b"\n"Mazda RX4",1,2\n"Datsun 710",3,4\n',
        ",a,b\n0,1,2\n1,3,4\n",
        ",0,1\n0,1,2\n1,3,4\n",
    ],
)
def test_names_of_rows_are_left_out_with_a_note(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path, text)
    np.testing.assert_array_equal(read_rows(path), [[1, 2], [3, 4]])
    assert "note: the first column of rows.csv holds names of rows" in capsys.readouterr().err
    # Columns are counted as they are in the rows, and the first one is out already.
    np.testing.assert_array_equal(read_rows(path, "-2"), [[2], [4]])
    np.testing.assert_array_equal(read_rows(path, "-3"), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,four\n", "line 3, column 'b': 'four' is no number"),
        ("1,2\n3,four\n", r"line 2, column number 1 \(the first is 0\): 'four' is no number"),
        ("a,b\n1,\n", "line 2, column 'b': the entry is empty"),
        ("a,b\n1,2\n3,nan\n", "line 3, column 'b': 'nan' is not finite"),
        ("1,2\n3,-Infinity\n", "line 2, column number 1 .* is not finite"),
        ("1,2\n3,1e999\n", "line 2, column number 1 .*'1e999' is not finite"),
        ("1,2\n3,1_0\n", "line 2, column number 1 .*'1_0' is no number"),
        ("1,2\n3,٤\n", "line 2, column number 1 .* is no number"),
        ("a,b,c\nx,y,3\n", "line 2: it has no finite numbers in the columns a, b;"),
        ("a,b\n1,2\n3\n", "line 3: it has 1 cell and line 1 has 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3: it has 3 cells and line 1 has 2"),
        ("1,2\n3,4,5\n", "line 2: it has 3 cells and the first row has 2"),
        ("1,2\n\n3\n", "line 3: it has 1 cell"),
        ("a,b,c\n1,2\n", "line 2: it has 2 cells and line 1 has 3"),
        ("a,b\n1,2,3,4\n", "line 2: it has 4 cells and line 1 has 2"),
        ("a,b\n1,2,\n3,4,\n", "line 2: it ends with a delimiter, and the header does not"),
        (",a,b\n0,1,2,3\n", "line 2: it has 4 cells and line 1 has 3"),
        ("a,b,\n1,2,\n", "line 1: '' is a name or a missing value; say --header"),
        ("1,2\n,\n", "line 2: it has no finite numbers in the columns 0, 1"),
        ("x\n1\n\n2\n", "line 3: it is empty between the rows of a single column"),
        ("1,2\n# note\n3,4\n", "line 2: it has 1 cell"),
        ("1,2\n#3,4\n5,6\n", "line 2, column number 0 .*'#3' is no number"),
        ("#1,2\n3,4\n", "line 1: it begins with # and looks like a row"),
        ("0,1,2\n5,6,7\n", "line 1: it counts from 0, as a header may; say --header"),
        ("id,2019,2020\n1,2,3\n", "line 1: it has numbers and also 'id', .*say --header"),
        ("NA,1,2\n3,4,5\n", "line 1: it has numbers and also 'NA', .*say --header"),
        (",1,2\n3,4,5\n", "line 1: it has numbers and also '', .*say --header"),
        ("x,NA\n1,2\n", "line 1: 'NA' is a name or a missing value; say --header"),
        ('""\n1\n', "line 1: '' is a name or a missing value; say --header"),
        ("\t\n1\t2\n", "line 1: '' is a name or a missing value; say --header"),
        ("NA\n1\n", "line 1: 'NA' is a name or a missing value; say --header"),
        ("1,5;2,5\n3,5;4,5\n", "line 1: it has both commas and semicolons"),
        ("a;b\n1,5;2.5\n", "line 2, column 'a': '1,5' is no number"),
        ('a,b\n"1,2\n3,4\n', "line 2: unexpected end of data"),
        ('a,b\n"1"2,3\n', "line 2: ',' expected after '\"'"),
        ("1 2 3\n4 5 6\n", "line 2, column '1 2 3': '4 5 6' is no number"),
        ("1,2\n3,\udcff\n", "line 2: it is not a text in UTF-8"),
        ("\udcff\udcfe1\x00,\x002\x00\n\x00", "line 1: it is not a text in UTF-8"),
        ("1,2\n3,4\x00\n", "line 2, column number 1 .* is no number"),
    ],
)
def test_what_is_refused_and_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"^rows\.csv, {message}"):
        read_rows(table(tmp_path, text))


def test_the_user_says_whether_there_is_a_header(tmp_path: Path) -> None:
    path = table(tmp_path, "0,1\n5,6\n")
    np.testing.assert_array_equal(read_rows(path, header=True), [[5, 6]])
    np.testing.assert_array_equal(read_rows(path, header=False), [[0, 1], [5, 6]])
    path = table(tmp_path, "id,2019\n1,2\n")
    np.testing.assert_array_equal(read_rows(path, "2019", header=True), [[1]])
    with pytest.raises(InputError, match=r"line 1, column number 0 .*'id' is no number"):
        read_rows(path, header=False)


def test_a_text_may_be_left_out_with_what_it_has_inside(tmp_path: Path) -> None:
    path = table(tmp_path, 'x,"what\nit is",y\n1,"a, b",2\n3,"#\n\n""c""",4\n5,nan,6\n')
    np.testing.assert_array_equal(read_rows(path, "what\nit is"), [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(read_rows(path, "-2"), [[1, 2], [3, 4], [5, 6]])


def test_a_name_that_is_there_twice_is_no_target(tmp_path: Path) -> None:
    path = table(tmp_path, "a,b,a\n1,2,3\n")
    with pytest.raises(InputError, match="2 columns are called 'a', numbers 0, 2: give the number"):
        read_rows(path, "a")
    np.testing.assert_array_equal(read_rows(path, "2"), [[1, 2]])


def test_tabs_are_the_only_delimiter_of_tsv(tmp_path: Path) -> None:
    path = table(tmp_path, "a, b\tc\n1\t2\n", "rows.tsv")
    np.testing.assert_array_equal(read_rows(path), [[1, 2]])
    with pytest.raises(
        InputError, match=r"rows\.tsv, line 2, column number 0 .*the entry is empty"
    ):
        read_rows(table(tmp_path, "1\t2\n\t2\n", "rows.tsv"))


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


def test_many_names_are_shortened(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    names = ",".join(f"c{number}" for number in range(30))
    path.write_text(f"{names}\n{','.join('x' * 30)}")
    with pytest.raises(ValueError, match=r"c0, .*, c9, … \(30 in all\)"):
        read_rows(path)


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "a,b\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=r"rows\.csv has (no|0) rows"):
        read_rows(tmp_path / "rows.csv")


def test_the_only_column_cannot_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x\n1\n2\n")
    with pytest.raises(InputError, match="0 columns to use"):
        read_rows(tmp_path / "rows.csv", "x")


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

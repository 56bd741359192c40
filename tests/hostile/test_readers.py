"""A few thousand damaged files, the first of those that ``tests.hostile.fuzz_readers`` tries."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.hostile import fuzz_readers, plain_parsers
from tests.hostile.damaged_files import Canary, formats


def test_damaged_files_are_read_right_or_refused_by_name(tmp_path: Path) -> None:
    tallies = fuzz_readers.run(4000, 0, tmp_path)
    assert [failure for tally in tallies.values() for failure in tally.failures] == []
    for name, tally in tallies.items():
        assert tally.counts["damaged"] == 400, name
        # Not all damage makes a file wrong: what is still a table is still read.
        assert tally.counts["read"] >= 10, name


def test_whole_files_are_read(tmp_path: Path) -> None:
    for kind in formats(tmp_path / "canary"):
        for number, content in enumerate(kind.whole):
            path = tmp_path / f"{number}{kind.suffix}"
            kind.write(content, path)
            outcome, problem = fuzz_readers._outcome(kind, path, content)
            assert problem == ""
            assert outcome == ("refused" if b"makedirs" in content else "read"), (kind.name, number)


def test_the_canary_would_tell(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Canary(tmp_path / "canary")))
    assert os.listdir(tmp_path) == ["canary"]


def test_the_plain_parsers_read_what_they_should() -> None:
    csv = plain_parsers.table(b'# x\n"a","b"\nr,1,"2"\n\ns,3,4\n')
    np.testing.assert_array_equal(csv.toarray(), [[1, 2], [3, 4]])
    assert plain_parsers.table(b"1,2\n3\n") is None
    svm = plain_parsers.svmlight(b"1 1:2 3:4\n")
    np.testing.assert_array_equal(svm.toarray(), [[2, 0, 4]])
    market = b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n"
    np.testing.assert_array_equal(plain_parsers.matrix_market(market).toarray(), [[0, -5], [5, 0]])


@pytest.mark.parametrize("name", ["csv", "svmlight", "mtx"])
def test_a_wrong_reading_is_a_failure(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that loses its last row is found out."""
    read = fuzz_readers.read_rows
    monkeypatch.setattr(fuzz_readers, "read_rows", lambda path: read(path)[:-1])
    assert fuzz_readers.run(200, 0, tmp_path)[name].failures

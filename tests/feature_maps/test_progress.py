"""Progress goes to standard error, only when asked for, and never to standard output."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch import PolynomialSketch, execution
from powersketch.feature_maps import maps
from powersketch.feature_maps.base import FeatureMap
from tests.feature_maps.cases import assert_same_bits, each_estimator, uncentred

REPORT = re.compile(r"\r\[(\w+)\] (\d+)/(\d+) rows \((\d+)%\)(\n?)")


@pytest.fixture
def many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 32 rows, each of which is worth a report."""
    monkeypatch.setattr(maps, "_BATCH_BYTES", 1)
    monkeypatch.setattr(execution, "_SECONDS_BETWEEN_REPORTS", 0.0)


@pytest.mark.usefixtures("many_batches")
@each_estimator
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_every_batch_is_reported(
    capsys: pytest.CaptureFixture[str], estimator: type[FeatureMap], container: Any
) -> None:
    rows, name = container(uncentred(100, 20)), estimator.__name__
    estimator(n_components=30, verbose=1).fit(rows).transform(rows)
    printed = capsys.readouterr()
    assert REPORT.findall(printed.err) == [
        (name, "32", "100", "32", ""),
        (name, "64", "100", "64", ""),
        (name, "96", "100", "96", ""),
        (name, "100", "100", "100", "\n"),
    ]
    assert REPORT.sub("", printed.err) == ""
    assert printed.out == ""


@pytest.mark.usefixtures("many_batches")
@each_estimator
@pytest.mark.parametrize("verbose", [0, False])
def test_silent_unless_asked(
    capsys: pytest.CaptureFixture[str], estimator: type[FeatureMap], verbose: int
) -> None:
    estimator(verbose=verbose).fit_transform(uncentred(100, 20))
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("many_batches")
@each_estimator
def test_features_are_the_same(
    capsys: pytest.CaptureFixture[str], estimator: type[FeatureMap]
) -> None:
    X = uncentred(100, 20)
    told = estimator(random_state=0, verbose=1).fit_transform(X)
    assert_same_bits(told, estimator(random_state=0).fit_transform(X))
    assert capsys.readouterr().err


def test_reports_are_rare(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In quick succession only the last batch is reported."""
    monkeypatch.setattr(maps, "_BATCH_BYTES", 1)
    monkeypatch.setattr(execution, "_SECONDS_BETWEEN_REPORTS", 3600.0)
    PolynomialSketch(verbose=1).fit(uncentred(100, 20)).transform(uncentred(100, 20))
    assert capsys.readouterr().err == "\r[PolynomialSketch] 100/100 rows (100%)\n"


def test_time_decides(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second must pass between two reports."""
    clock = iter([0.0, 0.4, 0.6, 1.0, 1.2, 1.3])
    monkeypatch.setattr(execution.time, "monotonic", lambda: next(clock))
    report = execution.Progress("map", 50, 1)
    for done in (10, 20, 30, 40, 50):
        report.update(done)
    reported = re.findall(r"(\d+)/50", capsys.readouterr().err)
    assert reported == ["20", "40", "50"]

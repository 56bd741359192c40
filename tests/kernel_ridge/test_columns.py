"""Columns as the kernel sees them: errors of the data do no harm, and nothing else is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from powersketch.exceptions import InputError
from powersketch.kernel_ridge.choosing.model import Wishes, found_model
from powersketch.kernel_ridge.rows.columns import (
    Columns,
    checked_clip,
    given_columns,
    median_squared_distance,
    normalised,
    plain_columns,
    prepared_columns,
    summary_of,
)
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernels import Gaussian
from powersketch.random_streams import RandomStreams
from tests.kernel_ridge.ridge_data import Float64


def normal(rows: int = 300, columns: int = 3, seed: int = 0) -> Float64:
    return np.random.default_rng(seed).normal(size=(rows, columns))


def prepared(X: Any, scaling: str = "scaled", clip: Any = "auto") -> Columns:
    columns = prepared_columns(X, summary_of(X, clip), scaling, clip)
    assert columns is not None
    return columns


class TestLimits:
    @pytest.mark.parametrize("error", [1e20, -1e20, -9999.0])
    @pytest.mark.parametrize("rows", [20, 300])
    def test_ignore_an_error(self, error: float, rows: int) -> None:
        X = normal(rows)
        spoilt = X.copy()
        spoilt[7, 1] = error
        clean, found = prepared(X), prepared(spoilt)
        for name in ("lower", "upper", "centre", "factors"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(clean, name), rtol=0.2, atol=0.1
            )
        others = np.arange(rows) != 7
        np.testing.assert_allclose(
            found.transform(spoilt)[others], clean.transform(X)[others], atol=0.3
        )
        assert np.abs(found.transform(spoilt)).max() < 10.0

    def test_an_error_counts_as_the_median_and_what_is_a_little_beyond_is_clipped(self) -> None:
        X = normal()
        columns = prepared(X)
        new = np.array([[1e20, 0.0, 0.0], [5.0, 0.0, 0.0], [X[:, 0].max(), 0.0, 0.0]])
        Z = columns.transform(new)[:, 0]
        assert Z[0] == 0.0
        upper = (columns.upper[0] - columns.centre[0]) * columns.factors[0]  # type: ignore[index]
        assert Z[1] == pytest.approx(upper)
        assert 0.0 < Z[2] < Z[1]

    def test_keep_long_tails(self) -> None:
        generator = np.random.default_rng(0)
        tails = np.column_stack(
            (np.exp(2.0 * generator.normal(size=1000)), generator.exponential(size=1000))
        )
        columns = prepared(tails)
        Z = columns.transform(tails)
        order = np.argsort(tails, axis=0)
        for column in range(2):  # no two values have become one
            assert (np.diff(Z[order[:, column], column]) > 0.0).all()

    def test_that_are_given_are_standard_deviations_from_the_median(self) -> None:
        X = normal(1000)
        Z = prepared(X, clip=1.5).transform(X)
        assert np.abs(Z).max() == pytest.approx(1.5)
        assert 0.1 < np.mean(np.abs(Z) >= 1.4999) < 0.17  # 13 % of normal numbers are beyond

    def test_none_are_none(self) -> None:
        X = normal()
        new = 1e6 * X
        columns = prepared(X, clip=None)
        np.testing.assert_allclose(
            columns.transform(new), (new - columns.centre) * columns.factors, rtol=1e-12
        )

    def test_of_two_values_are_these_values(self) -> None:
        X = np.repeat([[0.0], [1.0]], (200, 100), axis=0)
        columns = prepared(X)
        assert (columns.lower[0], columns.upper[0]) == (0.0, pytest.approx(1.1))
        assert len(np.unique(columns.transform(np.array([[0.0], [-3.0]])))) == 1

    @pytest.mark.parametrize("clip", ["often", 0.0, -1.0, np.nan, [1.0], True])
    def test_others_are_refused(self, clip: Any) -> None:
        with pytest.raises((ValueError, TypeError), match="clip"):
            checked_clip(clip)


class TestScaling:
    def test_gives_equal_spreads_or_one_factor(self) -> None:
        X = normal() * [1.0, 10.0, 1e-3]
        np.testing.assert_allclose(prepared(X).transform(X).std(axis=0), 1.0, rtol=1e-9)
        as_it_is = prepared(X, "as-is")
        assert np.unique(as_it_is.factors).size == 1
        np.testing.assert_allclose(
            as_it_is.transform(X), as_it_is.factors[0] * (X - np.median(X, axis=0)), rtol=1e-9
        )

    @pytest.mark.parametrize("scaling", ["scaled", "as-is"])
    def test_constant_columns_are_zero_and_stay_so(self, scaling: str) -> None:
        X = normal()
        X[:, 1] = 1e8 / 3.0
        columns = prepared(X, scaling)
        new = X.copy()
        new[:, 1] = 5.0
        for rows in (X, new):
            assert not columns.transform(rows)[:, 1].any()

    def test_all_columns_may_be_constant(self) -> None:
        X = np.full((30, 2), 7.0)
        for scaling in ("scaled", "as-is"):
            assert not normalised(prepared(X, scaling), X, RandomStreams(0)).transform(X).any()

    @pytest.mark.parametrize(
        ("scale", "dtype"),
        [(1e200, np.float64), (1e-200, np.float64), (1e37, np.float32), (1e-40, np.float32)],
    )
    def test_spreads_out_of_range_are_refused(self, scale: float, dtype: Any) -> None:
        with pytest.raises(InputError, match=r"the columns of X vary by .*: multiply X by"):
            summary_of((scale * normal()).astype(dtype), "auto")

    def test_a_column_that_hardly_varies_is_constant_beside_others(self) -> None:
        X = normal().astype(np.float32)
        X[:, 0] = np.float32(1e-44) * (np.arange(300) % 2)
        Z = prepared(X).transform(X)
        assert not Z[:, 0].any()
        assert np.isfinite(Z).all()

    @pytest.mark.parametrize("scaling", ["scaled", "as-is", "indicators", "ranks"])
    def test_float32_stays_float32(self, scaling: str) -> None:
        X = normal()
        X[:, 0] = np.arange(300) % 4
        X[:, 1] = np.exp(X[:, 1])
        columns = prepared(X, scaling)
        for changed in (columns, columns.with_constant(), replace(columns, metric=np.eye(3)[0])):
            if scaling == "indicators" and changed.metric is not None:
                continue
            Z = changed.transform(X.astype(np.float32))
            assert Z.dtype == np.float32
            np.testing.assert_allclose(Z, changed.transform(X), rtol=1e-4, atol=1e-5)

    def test_does_not_depend_on_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X = normal()
        columns = prepared(X)
        whole = columns.transform(X)
        monkeypatch.setattr("powersketch.kernel_ridge.rows.columns._BLOCK_ENTRIES", 30)
        np.testing.assert_array_equal(columns.transform(X), whole)

    def test_rows_are_left_as_they_are(self) -> None:
        X = normal()
        for rows in (X, sp.csr_array(X)):
            before = rows.copy()
            prepared(rows, "as-is").transform(rows)
            assert (abs(rows - before)).max() == 0.0


class TestIndicators:
    def rows(self) -> Float64:
        generator = np.random.default_rng(1)
        kinds = generator.integers(0, 4, 200) * 10.0
        return np.column_stack((kinds, generator.normal(size=200), np.arange(200.0)))

    def test_replace_columns_of_few_whole_numbers(self) -> None:
        X = self.rows()
        columns = prepared(X, "indicators")
        assert [part.column for part in columns.indicators] == [0]
        Z = columns.transform(X)
        assert Z.shape == (200, 2 + 4)
        np.testing.assert_allclose(Z.mean(axis=0)[2:], 0.0, atol=1e-12)
        # All of them together vary like one column, and rows of one kind are equal.
        assert Z[:, 2:].var(axis=0).sum() == pytest.approx(1.0)
        assert len(np.unique(Z[:, 2:].round(9), axis=0)) == 4

    def test_of_unknown_values_are_all_off(self) -> None:
        columns = prepared(self.rows(), "indicators")
        unknown, known = columns.transform(np.array([[25.0, 0.0, 0.0], [20.0, 0.0, 0.0]]))[:, 2:]
        assert (unknown < 0.0).all()
        assert (known > 0.0).sum() == 1

    def test_there_are_none_without_such_columns(self) -> None:
        X = normal()
        assert prepared_columns(X, summary_of(X, "auto"), "indicators", "auto") is None
        truths = (X > 0.0).astype(float)  # two values need no indicators
        assert prepared_columns(truths, summary_of(truths, "auto"), "indicators", "auto") is None


class TestRanks:
    def rows(self) -> Float64:
        """Return a normal column, a skewed one, one with long tails, and one of few values."""
        generator = np.random.default_rng(2)
        X = generator.normal(size=(500, 4))
        X[:, 1] = 100.0 + np.exp(2.0 * X[:, 1])
        X[:, 2] = generator.standard_t(2.0, 500)
        X[:, 3] = generator.integers(0, 20, 500) ** 4
        return X

    def test_replace_columns_that_are_skewed_or_have_long_tails(self) -> None:
        X = self.rows()
        columns = prepared(X, "ranks")
        assert [part.column for part in columns.ranks] == [1, 2]
        Z, scaled = columns.transform(X), prepared(X).transform(X)
        np.testing.assert_array_equal(Z[:, [0, 3]], scaled[:, [0, 3]])
        for column in (1, 2):
            assert stats.kstest(Z[:, column], "norm").statistic < 0.01
            np.testing.assert_array_equal(np.argsort(Z[:, column]), np.argsort(X[:, column]))

    def test_equal_values_have_the_score_of_their_middle(self) -> None:
        X = self.rows()
        lowest = np.argsort(X[:, 1])[:300]
        X[lowest, 1] = X[lowest, 1].max()
        Z = prepared(X, "ranks").transform(X)
        np.testing.assert_allclose(Z[lowest, 1], stats.norm.ppf(0.3), rtol=1e-12)

    def test_new_values_lie_between_their_neighbours_and_within_the_ends(self) -> None:
        X = self.rows()
        columns, (low, high) = prepared(X, "ranks"), np.sort(X[:, 1])[[250, 251]]
        new = np.tile(X[0], (5, 1))
        new[:, 1] = [low, 0.5 * (low + high), high, X[:, 1].max(), 1.05 * X[:, 1].max()]
        Z = columns.transform(new)[:, 1]
        assert Z[0] < Z[1] < Z[2] < Z[3] == Z[4]

    @pytest.mark.parametrize("clip", ["auto", None])
    def test_an_error_takes_one_rank(self, clip: Any) -> None:
        X = self.rows()
        spoilt = X.copy()
        spoilt[3, 1] = 1e20
        others = np.arange(500) != 3
        clean, found = (prepared(rows, "ranks", clip).transform(rows)[:, 1] for rows in (X, spoilt))
        ranks, expected = stats.norm.cdf(found[others]), stats.norm.cdf(clean[others])
        np.testing.assert_allclose(ranks, expected, atol=2.0 / 500)
        assert np.abs(found).max() < 4.0

    def test_there_are_none_without_such_columns_or_with_very_many(self) -> None:
        X = normal()
        assert prepared_columns(X, summary_of(X, "auto"), "ranks", "auto") is None
        wide = np.exp(2.0 * normal(60, 520))
        assert prepared_columns(wide, summary_of(wide, "auto"), "ranks", "auto") is None

    def test_of_many_rows_need_few_knots(self) -> None:
        X = np.exp(2.0 * normal(40_000, 1))
        columns = prepared(X, "ranks")
        assert columns.ranks[0].knots.size <= 256
        assert stats.kstest(columns.transform(X)[:, 0], "norm").statistic < 0.02


class TestSparse:
    def rows(self) -> Any:
        return sp.random_array((200, 30), density=0.1, rng=0, format="csr")

    def test_stays_sparse_and_has_one_factor(self) -> None:
        X = self.rows()
        Z = prepared(X, "as-is").transform(X)
        assert sp.issparse(Z)
        assert Z.nnz == X.nnz
        ratios = Z.data / X.data
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)
        single = prepared(X, "as-is").transform(X.astype(np.float32))
        assert single.dtype == np.float32

    def test_ignores_an_error(self) -> None:
        X = self.rows()
        spoilt = X.copy()
        spoilt.data[5] = 1e20
        clean, found = prepared(X, "as-is"), prepared(spoilt, "as-is")
        np.testing.assert_allclose(found.factors, clean.factors, rtol=0.05)
        Z = found.transform(spoilt)
        others = np.arange(X.nnz) != 5
        np.testing.assert_allclose(Z.data[others], clean.transform(X).data[others], rtol=0.05)
        assert abs(Z).max() < 5.0

    def test_other_scalings_have_nothing_to_do(self) -> None:
        for scaling in ("scaled", "indicators", "ranks"):
            assert prepared_columns(self.rows(), None, scaling, "auto") is None

    def test_a_diagonal_metric_keeps_it_and_a_full_one_does_not(self) -> None:
        X = self.rows()
        columns = prepared(X, "as-is")
        diagonal = replace(columns, metric=np.arange(1.0, 31.0))
        assert sp.issparse(diagonal.transform(X))
        np.testing.assert_allclose(
            diagonal.transform(X).toarray(),
            columns.transform(X).toarray() * np.arange(1.0, 31.0),
            rtol=1e-12,
        )
        root = normal(30, 4)
        np.testing.assert_allclose(
            replace(columns, metric=root).transform(X), columns.transform(X) @ root, rtol=1e-9
        )


class TestMetric:
    def test_comes_after_everything_but_a_constant(self) -> None:
        X = normal()
        root = normal(3, 2, seed=5)
        columns = replace(prepared(X), metric=root).with_constant()
        Z = columns.transform(X)
        np.testing.assert_allclose(Z[:, :2], prepared(X).transform(X) @ root, rtol=1e-12)
        np.testing.assert_array_equal(Z[:, 2], 1.0)
        np.testing.assert_allclose(columns.times(3.0).transform(X)[:, :2], 3.0 * Z[:, :2])
        np.testing.assert_array_equal(columns.times(3.0).transform(X)[:, 2], 1.0)

    def test_the_matrix_has_trace_one(self) -> None:
        root = normal(3, 2)
        matrix = replace(plain_columns(normal()), metric=root).metric_matrix()
        np.testing.assert_allclose(matrix, root @ root.T / np.trace(root @ root.T), rtol=1e-12)
        for ask in (plain_columns(normal()).metric_matrix, plain_columns(normal()).importances):
            with pytest.raises(AttributeError, match="this fit has none: use metric="):
                ask()

    def test_importances_are_those_of_the_given_columns(self) -> None:
        X = TestIndicators().rows()
        columns = replace(prepared(X, "indicators"), metric=np.sqrt([1.0, 2.0, 1.0, 1.0, 1.0, 4.0]))
        np.testing.assert_allclose(columns.importances(), [0.7, 0.1, 0.2], rtol=1e-12)


class TestGiven:
    def test_nothing_is_done_without_being_asked_for(self) -> None:
        X = normal()
        for scaling in (None, "auto"):
            for clip in (None, "auto"):
                wishes = Wishes("auto", "auto", scaling, clip, True)
                rows = TrainingRows(X, X[:, 0], None)
                model = found_model(rows, Gaussian(0.5), wishes, RandomStreams(0, "test"))
                assert model.columns is None

    def test_limits_alone_change_no_other_entry(self) -> None:
        X = normal(1000)
        columns = given_columns(X, None, 2.0)
        assert columns is not None
        Z = columns.transform(X)
        deviations = np.abs(X - np.median(X, axis=0))
        inside = deviations < 1.9 * X.std(axis=0)
        np.testing.assert_array_equal(Z[inside], X[inside])
        assert (np.abs(Z) < np.abs(X)).any()

    def test_a_scaling_is_done(self) -> None:
        X = normal() * [1.0, 10.0, 100.0]
        columns = given_columns(X, "scaled", None)
        assert columns is not None
        np.testing.assert_allclose(columns.transform(X).std(axis=0), 1.0, rtol=1e-9)

    def test_a_scaling_without_effect_on_sparse_rows_leaves_them(self) -> None:
        X = TestSparse().rows()
        columns = given_columns(X, "scaled", None)
        assert columns is not None
        assert (columns.transform(X) != X).nnz == 0


def test_normalised_rows_have_a_median_squared_distance_of_one() -> None:
    X = normal(1000, 4) * [1.0, 5.0, 2.0, 0.1]
    columns = normalised(prepared(X, "as-is"), X, RandomStreams(0))
    assert median_squared_distance(columns.transform(X)) == pytest.approx(1.0, rel=0.1)


def test_the_median_distance_is_that_of_different_rows() -> None:
    rows = np.repeat([[0.0], [0.0], [0.0], [2.0]], 5, axis=0)
    assert median_squared_distance(rows) == pytest.approx(4.0)
    assert median_squared_distance(sp.csr_array(rows)) == pytest.approx(4.0)
    assert median_squared_distance(np.ones((5, 2))) == 1.0

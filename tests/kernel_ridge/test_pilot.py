"""A pilot's leave-one-out errors are those of refits on its landmarks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch.exceptions import InputError
from powersketch.kernel_ridge.choosing.pilot import (
    Pilot,
    describe_kernel,
    least_error,
    standard_error,
)
from powersketch.kernel_ridge.rows.columns import plain_columns
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernels import ArcCosine, Gaussian, Kernel, Linear, Polynomial
from powersketch.random_streams import RandomStreams
from tests.kernel_ridge.ridge_data import Cauchy, Float64, brute_force, waves, weights

STREAMS = RandomStreams(0)


def pilot_of(
    rows: int = 40, landmarks: int = 12, *, weighted: bool = False, fit_intercept: bool = True
) -> Pilot:
    X, y = waves(rows)
    given = TrainingRows(X, y, weights(rows) + 0.1 if weighted else None)
    return Pilot.with_landmarks(given, landmarks, STREAMS, fit_intercept=fit_intercept)


def features(pilot: Pilot, kernel: Kernel, linear: float) -> Float64:
    """Return features whose inner products are the Nyström kernel, and the columns beside them."""
    X = pilot.rows.X
    L = X[pilot.landmarks]
    values, vectors = np.linalg.eigh(kernel(L))
    Z: Float64 = kernel(X, L) @ vectors / np.sqrt(values)
    return np.concatenate((Z, math.sqrt(linear) * X), axis=1) if linear else Z


class TestTrial:
    @pytest.mark.parametrize("linear", [0.0, 0.7])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("kernel", [Gaussian(3.0), Polynomial(3, 1.0, 1.0)])
    def test_errors_equal_those_of_refits(
        self, kernel: Kernel, weighted: bool, fit_intercept: bool, linear: float
    ) -> None:
        # No more landmarks than the polynomial kernel has dimensions.
        pilot = pilot_of(landmarks=8, weighted=weighted, fit_intercept=fit_intercept)
        trial = pilot.trial(pilot.view(None), kernel, linear)
        Z, y = features(pilot, kernel, linear), pilot.rows.targets
        w = pilot.weights * pilot.rows.count if pilot.rows.weights is None else pilot.rows.weights
        squares = []
        for i in range(40):
            rest = np.arange(40) != i
            coef, intercept = brute_force(
                Z[rest], y[rest], trial.alpha, w[rest], fit_intercept=fit_intercept
            )
            squares.append((y[i] - Z[i] @ coef - intercept) ** 2)
        variance = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
        np.testing.assert_allclose(trial.squares, np.array(squares) / variance, rtol=1e-4)
        assert trial.error == pytest.approx(np.average(squares, weights=w) / variance, rel=1e-4)

    @pytest.mark.parametrize("linear", [0.0, 0.7])
    def test_predictions_are_those_of_ridge_regression(self, linear: float) -> None:
        pilot = pilot_of()
        trial = pilot.trial(pilot.view(None), Gaussian(3.0), linear)
        Z = features(pilot, Gaussian(3.0), linear)
        coef, intercept = brute_force(Z, pilot.rows.targets, trial.alpha)
        expected = Z @ coef + intercept
        np.testing.assert_allclose(trial.predict(pilot.rows.X)[:, 0], expected, atol=1e-5)
        rest = pilot.squares_at(trial, pilot.rows)
        residuals = (pilot.rows.targets - expected) ** 2 / pilot.variance
        np.testing.assert_allclose(rest, residuals, atol=1e-5)

    def test_a_line_is_ridge_regression_on_the_columns(self) -> None:
        pilot = pilot_of()
        trial = pilot.trial(pilot.view(None), Linear())
        coef, intercept = brute_force(pilot.rows.X, pilot.rows.targets, trial.alpha)
        np.testing.assert_allclose(trial.slopes[:, 0], coef, rtol=1e-8)
        assert trial.intercept[0] == pytest.approx(intercept)

    def test_columns_may_be_more_than_landmarks(self) -> None:
        generator = np.random.default_rng(0)
        X = generator.normal(size=(60, 80))
        rows = TrainingRows(X, X @ generator.normal(size=80), None)
        pilot = Pilot.with_landmarks(rows, 60, STREAMS, fit_intercept=True)
        view = pilot.view(None)
        assert not view.has_few_columns
        line = pilot.trial(view, Linear())
        coef, intercept = brute_force(X, rows.targets, line.alpha)
        np.testing.assert_allclose(line.predict(X)[:, 0], X @ coef + intercept, atol=1e-3)
        beside = pilot.trial(view, Gaussian(1e-3), 1.0)
        assert beside.slopes.shape == (80, 1)
        assert beside.error <= 1.1 * line.error

    def test_sparse_rows_give_the_same(self) -> None:
        pilot = pilot_of()
        sparse = replace(pilot, rows=replace(pilot.rows, X=sp.csr_array(pilot.rows.X)))
        for kernel, linear in ((Gaussian(3.0), 0.5), (Linear(), 0.0)):
            dense = pilot.trial(pilot.view(None), kernel, linear)
            found = sparse.trial(sparse.view(plain_columns(sparse.rows.X)), kernel, linear)
            assert found.error == pytest.approx(dense.error, rel=1e-8)
            np.testing.assert_allclose(
                found.predict(sparse.rows.X), dense.predict(pilot.rows.X), atol=1e-8
            )

    def test_many_targets_count_by_their_mean(self) -> None:
        pilot = pilot_of()
        y = pilot.rows.targets
        both = replace(pilot, rows=replace(pilot.rows, targets=np.column_stack((y, y))))
        single = pilot.trial(pilot.view(None), Gaussian(3.0))
        assert both.trial(both.view(None), Gaussian(3.0)).error == pytest.approx(single.error)

    def test_constant_targets_have_no_error(self) -> None:
        pilot = pilot_of()
        constant = replace(pilot, rows=replace(pilot.rows, targets=np.full(40, 4.0)))
        assert constant.variance == 1.0
        assert constant.trial(constant.view(None), Gaussian(3.0)).error < 1e-20

    def test_a_kernel_that_is_not_positive_is_refused(self) -> None:
        class Distance(Cauchy):
            """A distance, which is no kernel: zero where rows are equal, and large elsewhere."""

            def _values(self, *arguments: Any) -> Any:
                return 1.0 - super()._values(*arguments)

        pilot = pilot_of()
        with pytest.raises(InputError, match="not positive definite at some of the rows"):
            pilot.trial(pilot.view(None), Distance(3.0))

    def test_threads_change_nothing(self) -> None:
        pilot = pilot_of(100, 50)
        kernels = [Gaussian(gamma) for gamma in (0.1, 1.0, 10.0)]
        one, two = (
            replace(pilot, threads=threads).trials(pilot.view(None), kernels) for threads in (1, 2)
        )
        assert [t.error for t in one] == [t.error for t in two]
        assert [t.kernel for t in two] == kernels
        assert least_error(two).error == min(t.error for t in one)


class TestSize:
    @pytest.mark.parametrize(
        ("rows", "pilot", "landmarks"),
        [(100, 100, 100), (500, 500, 192), (1000, 1000, 400), (60_000, 8000, 768)],
    )
    def test_suits_the_rows(self, rows: int, pilot: int, landmarks: int) -> None:
        X = np.arange(float(rows))[:, np.newaxis]
        found = Pilot.of(
            TrainingRows(X, X[:, 0], None), fit_intercept=True, streams=STREAMS, threads=1
        )
        assert (found.rows.count, len(found.landmarks)) == (pilot, landmarks)
        assert np.unique(found.rows.X).size == pilot
        assert np.unique(found.landmarks).size == landmarks

    def test_a_part_has_fewer_landmarks_in_proportion(self) -> None:
        pilot = pilot_of(100, 40)
        part = pilot.part(np.arange(50), STREAMS)
        assert (part.rows.count, len(part.landmarks)) == (50, 20)


def test_kernels_are_described() -> None:
    assert describe_kernel(Linear()) == "linear model"
    assert describe_kernel(Gaussian(0.12345)) == "Gaussian kernel of gamma 0.123"
    assert describe_kernel(Polynomial(3)) == "polynomial kernel of degree 3"
    assert describe_kernel(ArcCosine(1)) == "arc-cosine kernel of order 1"


def test_the_standard_error_is_that_of_the_mean_difference() -> None:
    left, right = np.random.default_rng(0).normal(size=(2, 400))
    expected = np.std(left - right, ddof=1) / 20.0
    assert standard_error(left, right) == pytest.approx(expected, rel=1e-9)
    assert standard_error(left, left) == 0.0

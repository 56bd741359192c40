"""SketchedKernelRidge: kernel ridge regression on a feature map, or with the exact kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin

from powersketch.arrays import Float64, Real, Rows, Vector
from powersketch.docstrings import documented
from powersketch.engines import elsewhere_too
from powersketch.exceptions import InputError
from powersketch.kernel_ridge.base import SketchedRidge, in_dtype_of_rows
from powersketch.kernel_ridge.rows.training_rows import (
    KnownTargets,
    TrainingRows,
    checked_targets,
    checked_weights,
    warn_of_outlying_targets,
)
from powersketch.kernel_ridge.solving.exact import ExactPosterior, check_freedom
from powersketch.kernel_ridge.solving.statistics import GramSpectrum, RidgeStatistics
from powersketch.storable import storable

# What features lack of k(x, x), in units of their last place, that may be due to rounding.
_ROUNDING = 16
# Standard deviations are fitted to these intervals of rows that were left out, if there are enough.
_COVERED, _NORMAL_QUANTILE = 0.95, 1.959964
_FEWEST_LEFT_OUT = 100


@storable
@documented
class SketchedKernelRidge(MultiOutputMixin, RegressorMixin, SketchedRidge):
    """Kernel ridge regression that chooses for itself, and scales.

    Without a parameter, it chooses columns, kernel, metric and features for the data, and says
    what it chose and why in `choice_`.

    It minimises Σ w_i (y_i − f(x_i) − b)² + alpha ‖f‖². On features, f(x) = ⟨z(x), β⟩ for the
    features z of a fitted map; one block of rows is read after the other, and what is kept is of
    the size of the features' Gram matrix. With the exact kernel, f is a combination of its
    functions k(·, x_i).

    Rows with absurd values, such as fill values, are left out of a fit where the kernel grows with
    its rows, as all others would be lost beside them: an `OutlierWarning` names them.

    A pickle holds what predictions need. It leaves out `statistics_`, as large as the Gram matrix,
    unless rows came by `partial_fit`; without them a loaded model has no standard deviations,
    `partial_fit` and `effective_dimension_`, and says so. To keep them, fit by `partial_fit`, or
    pickle ``model.statistics_`` beside the model and set it after loading.

    Parameters
    ----------
    %(ridge_model)s
    %(ridge_options)s
    %(verbose)s

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (m,) or (t, m); float or ndarray of shape (t,)
        The solution, as in scikit-learn's ``Ridge``; `coef_` on features only.
    noise_variance_ : float or ndarray of shape (t,)
        The variance σ² of the targets' noise, by the residuals Σ w_i r_i² / (n − degrees of
        freedom).
    %(ridge_attributes)s

    References
    ----------
    .. [SWYZ21] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import SketchedKernelRidge
    >>> random = np.random.RandomState(0)
    >>> X = random.rand(500, 3)
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.randn(500)
    >>> model = SketchedKernelRidge(random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.94
    >>> bool(0.09 < np.sqrt(model.noise_variance_) < 0.11)
    True
    """

    @elsewhere_too
    @documented
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the feature map and the ridge regression.

        Parameters
        ----------
        %(ridge_training)s

        Returns
        -------
        self : estimator
            The fitted regressor. A fit that fails leaves it as it was.
        """
        self._check_parameters()
        self._fit_rows(self._training_rows(X, y, sample_weight), X)
        return self

    @documented
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a block of rows; the first one fits the feature map.

        The solution is computed when it is asked for. It is that of all rows at once, with the
        map of the first block.

        Parameters
        ----------
        %(ridge_training)s

        Returns
        -------
        self : estimator
            The regressor, with the new rows.
        """
        self._check_parameters()
        self._check_partial()
        self._add_rows(self._training_rows(X, y, sample_weight), X)
        return self

    @documented
    def fit_batches(self, batches: Iterable[Any], *, target: Any = None) -> Self:
        """Fit in one pass over rows that do not fit into memory.

        Kernel, metric, landmarks and all other choices are made on the first batches, at least
        20,000 rows of them. Shuffle the rows if they have an order. If there are no more rows, the
        fit is that of :meth:`fit`.

        Parameters
        ----------
        %(ridge_batches)s

        Returns
        -------
        self : estimator
            The fitted regressor. A fit that fails leaves it as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from powersketch import SketchedKernelRidge
        >>> def batches():
        ...     random = np.random.RandomState(0)
        ...     for _ in range(6):
        ...         X = random.rand(5000, 2)
        ...         yield X, np.sin(6 * X[:, 0]) * X[:, 1]
        >>> model = SketchedKernelRidge("gaussian", n_components=200, random_state=0)
        >>> X, y = next(batches())
        >>> model.fit_batches(batches()).score(X, y) > 0.99
        True
        """
        return self._fit_batches(batches, target, {})

    @elsewhere_too
    @documented
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return predictions, and on request how uncertain they are.

        Ridge regression is the mean of a Gaussian process with the prior covariance
        σ² / alpha · k and noise of variance σ² / w_i, with σ² as in `noise_variance_`; the standard
        deviation is that of a new observation of weight one: of f + b after the data, and of the
        noise. What features cannot express of the kernel (k(x, x) − ‖z(x)‖², where that is
        positive) counts as unknown. The intercept has a flat prior. It takes an alpha above 0 and
        more rows than degrees of freedom. With alpha="loo" and 100 rows or more, it is multiplied
        by a number such that 95 % of the training rows, each left out of the fit, lie within 1.96
        standard deviations: noise need not be normal.

        Parameters
        ----------
        %(ridge_rows)s
        return_std : bool, default=False
            Whether to return standard deviations as well.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            float32 for float32 rows, else float64.
        std : ndarray of the same shape and dtype
            Standard deviations; only if `return_std`.
        """
        if not return_std:
            return self._decision(X)
        posterior, stretch, parts = self._posterior, self._stretch, []

        def visit(X: Rows, Z: Float64 | None) -> None:
            if isinstance(posterior, ExactPosterior) or Z is None:
                variances = posterior.variances(X)
            else:
                variances = posterior.variances(Z, self._missing(X, Z))
            parts.append(stretch * np.sqrt(variances))

        predictions = self._decision(X, visit)
        return predictions, in_dtype_of_rows(np.concatenate(parts), predictions.dtype)

    @cached_property
    def noise_variance_(self) -> Any:
        """The variance of the targets' noise, estimated by the residuals."""
        try:
            return self._posterior.noise_variance[()]
        except InputError as error:
            raise AttributeError(f"noise_variance_: {error}") from error

    @cached_property
    def _posterior(self) -> Any:
        """What standard deviations follow from; computed when one is first asked for."""
        solution = self._solved()
        if not solution.alpha > 0.0:
            raise InputError(
                "the standard deviation of predictions needs alpha above 0, got 0: without a "
                "penalty there is no prior."
            )
        if "X_fit_" in vars(self) and "row_sketch_" not in vars(self):
            rows = TrainingRows(self.X_fit_, np.empty(0), self._fit_weights)
            return ExactPosterior.of(rows, self.kernel_, solution, self.seed_)
        statistics = self._statistics("the standard deviation of predictions")
        return Posterior.of(statistics, solution.alpha, fit_intercept=solution.fit_intercept)

    @property
    def _stretch(self) -> Any:
        """What standard deviations are multiplied by such that intervals cover rows left out."""
        left_out = vars(self).get("_left_out")
        noise = np.atleast_1d(self._posterior.noise_variance)
        if left_out is None or len(left_out.slacks) < _FEWEST_LEFT_OUT or not (noise > 0.0).all():
            return 1.0
        errors = np.abs(left_out.predictions - left_out.targets)
        ratios = errors * np.sqrt(left_out.slacks * left_out.weights)[:, np.newaxis]
        covered = np.quantile(ratios / np.sqrt(noise), _COVERED, axis=0) / _NORMAL_QUANTILE
        return covered if self._posterior.noise_variance.ndim else float(covered[0])

    def _missing(self, X: Rows, Z: Float64) -> Vector | float:
        """Return what the features of every row lack of k(x, x)."""
        kernel = vars(self).get("kernel_")
        if kernel is None:
            return 0.0
        diagonal = kernel.diagonal(X).astype(np.float64)
        missing = diagonal - np.einsum("ij,ij->i", Z, Z)
        rounding = _ROUNDING * np.finfo(X.dtype).eps * diagonal
        return np.where(missing > rounding, missing, 0.0)

    def _rows_of_block(self, X: Any, y: Any, weights: Any, known: KnownTargets) -> TrainingRows:
        """Return checked rows of a block of many; none may be left that has weight."""
        del known
        rows, targets = checked_targets(X, y, estimator=self)
        return TrainingRows.of_some_weight(rows, targets, checked_weights(weights, rows))

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        rows, targets = checked_targets(X, y, estimator=self)
        weights = checked_weights(sample_weight, rows)
        warn_of_outlying_targets(targets, weights)
        return TrainingRows.of_positive_weight(rows, targets, weights)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of f under the prior covariance σ² / alpha · k and noise of variance σ² / w_i.

    Its mean is ridge regression. Its variance at x is σ² z(x)ᵀ(G + alpha I)⁻¹z(x), and, if there
    is an intercept, the same about the mean of the features plus σ² / Σ w_i.
    """

    spectrum: GramSpectrum
    alpha: float
    feature_mean: Vector
    constant: float
    noise_variance: Real

    @classmethod
    def of(cls, statistics: RidgeStatistics, alpha: float, *, fit_intercept: bool) -> Self:
        """Estimate the noise by the residuals, and keep what the variance follows from."""
        gram, cross, squares = statistics.moments(fit_intercept=fit_intercept)
        spectrum = GramSpectrum.of(gram)
        residuals = squares - spectrum.explained(alpha) @ (spectrum.vectors.T @ cross) ** 2
        freedom = statistics.count - spectrum.effective_dimension(alpha) - float(fit_intercept)
        check_freedom(float(freedom), statistics.count)
        noise = np.maximum(residuals, 0.0) / freedom
        mean = statistics.feature_mean if fit_intercept else np.zeros_like(spectrum.values)
        constant = 1.0 / statistics.weight if fit_intercept else 0.0
        return cls(spectrum, alpha, mean, constant, np.asarray(noise))

    def variances(self, Z: Float64, missing: Vector | float) -> Float64:
        """Return the variance of new observations at rows of features Z, for every target.

        `missing` is the part of k(x, x) that the features lack: what they cannot express is as
        uncertain as it was before any data.
        """
        rotated = (Z - self.feature_mean) @ self.spectrum.vectors
        known = rotated**2 @ self.spectrum.inverses(self.alpha) + self.constant
        return np.multiply.outer(1.0 + known + missing / self.alpha, self.noise_variance)

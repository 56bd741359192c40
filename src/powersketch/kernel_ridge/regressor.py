"""SketchedKernelRidge: kernel ridge regression on a feature map, or with the exact kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin

from powersketch.exceptions import InputError
from powersketch.kernel_ridge.base import SketchedRidge, in_dtype_of_rows
from powersketch.kernel_ridge.posterior import Posterior
from powersketch.kernel_ridge.primal import TrainingRows, features_of, map_blocks
from powersketch.kernel_ridge.targets import (
    checked_targets,
    checked_weights,
    warn_of_outlying_targets,
)
from powersketch.kernels import Kernel

# What features lack of k(x, x), in units of their last place, that may be due to rounding.
_ROUNDING = 16


class SketchedKernelRidge(MultiOutputMixin, RegressorMixin, SketchedRidge):
    """Kernel ridge regression that scales: ridge regression on explicit features.

    It minimises Σ w_i (y_i − f(x_i) − b)² + alpha ‖f‖². In mode "primal", f(x) = ⟨z(x), β⟩ for
    features z of a fitted map; one block of rows is looked at after the other, and what is kept
    is of the size of the features' Gram matrix. In the other modes f is a combination of the
    exact kernel's functions k(·, x_i).

    Rows with absurd values, such as fill values, are left out of a fit where the kernel grows with
    its rows, as all others would be lost beside them: an `OutlierWarning` names them.

    A pickle holds what predictions need. It leaves out `statistics_`, as large as the Gram matrix,
    unless rows came by `partial_fit`; without them a loaded model has no `predict_std`,
    `partial_fit` and `effective_dimension_`, and says so. To keep them, fit by `partial_fit`, or
    pickle ``model.statistics_`` beside the model and set it after loading.

    Parameters
    ----------
    sketch : feature map, str, kernel or None, default=None
        A feature map of powersketch or any transformer (it is cloned); the name of a kernel,
        "gaussian", "polynomial", "arc-cosine", "neural-tangent" or "dot-product", or an object of
        powersketch.kernels, for the oblivious map of that kernel; None for the Gaussian kernel
        with gamma "scale"; "auto" chooses between the oblivious map and LeverageNystroem, and
        their size, on a pilot of a few thousand rows: see `choice_`.
    kernel : str, kernel or None, default=None
        The kernel for ``sketch="auto"``; None is the Gaussian one with gamma "scale".
    kernel_params : dict or None, default=None
        Parameters of a kernel that is given by its name, those of its feature map.
    n_components : int or None, default=None
        Number of features. None leaves a given map as it is, takes 256 for a kernel, and what
        the budgets allow for "auto" (without budgets √n · log n).
    alpha : float, "loo" or "gcv", default=1.0
        The penalty, as in scikit-learn's ``KernelRidge`` and ``Ridge``; or how it is chosen from
        `alphas`, in mode "primal": "loo" takes the least leave-one-out error (over up to 2048
        rows, always with the model of all other rows); "gcv" takes the largest alpha whose
        generalised cross-validation score is within its standard error of the least.
    alphas : array of float or None, default=None
        What to choose from; None is 50 values from 1e-10 to 1 times the trace of the Gram matrix.
    mode : {"primal", "exact", "row-sketch"}, default="primal"
        "exact" solves the system of the exact kernel by preconditioned conjugate gradients;
        "row-sketch" solves a smaller one, whose rows are sketched to a number in proportion to
        the statistical dimension (Theorem E.2 of [1]_), and checks the result: see `row_sketch_`.
    eps : float, default=0.1
        The row sketch aims at an objective within 1 + eps of the least one.
    tol : float, default=1e-6
        The relative residual to reach in mode "exact".
    fit_intercept : bool, default=True
        Whether there is a constant term b without penalty. In mode "row-sketch" it is the mean of
        y.
    time_budget : float or None, default=None
        Seconds that a fit with ``sketch="auto"`` may take beside its pilot, which itself takes one
        or two. Budgets limit the size: they are refused beside `n_components`, and for a given map.
    memory_budget : float or None, default=None
        Bytes that a fit with ``sketch="auto"`` may hold at a time beside the rows: the Gram
        matrix, its factors, landmarks, and features of blocks of rows, which get shorter where
        memory is scarce. In the modes "exact" and "row-sketch", bytes of the kernel matrix, which
        is computed anew for every product where it takes more.
    random_state : int, RandomState instance or None, default=None
        Seed of the feature map, unless that has its own, and of all samples.
    n_jobs : int or None, default=None
        Number of threads, with scikit-learn's meaning. Products of matrices use those of BLAS.
    verbose : int, default=0
        Whether to report progress on standard error.

    Attributes
    ----------
    sketch_ : transformer
        The fitted feature map.
    coef_, intercept_ : ndarray of shape (m,) or (t, m); float or ndarray of shape (t,)
        The solution, as in scikit-learn's ``Ridge``; `coef_` in mode "primal" only.
    alpha_, alphas_, scores_ : float, ndarray, ndarray
        The penalty in use; the path it was chosen from, and the scores.
    statistics_ : RidgeStatistics
        Sums over all rows, in mode "primal"; they can be merged with those of other rows.
    effective_dimension_ : float
        Degrees of freedom of the fit without the intercept, in mode "primal".
    choice_ : Choice
        What ``sketch="auto"`` chose, and why.
    kernel_, X_fit_, dual_coef_ : kernel, array, ndarray of shape (n,) or (n, t)
        f(x) = k(x, X_fit_) @ dual_coef_, in the modes "exact" and "row-sketch"; of the rows in use.
    solver_result_ : SolverResult
        How the solver fared, in mode "exact".
    row_sketch_ : RowSketchReport
        Size and quality of the row sketch, with a bound of the objective relative to its minimum.
    seed_ : int
        The seed that all random numbers come from.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns seen by `fit`, if they had string names.

    References
    ----------
    .. [1] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.kernel_ridge import SketchedKernelRidge
    >>> random = np.random.RandomState(0)
    >>> X = random.rand(500, 3)
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.randn(500)
    >>> model = SketchedKernelRidge(alpha="loo", random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.95
    >>> bool(0.09 < np.sqrt(model.scores_.min()) < 0.11)
    True
    """

    def __init__(
        self,
        sketch: Any = None,
        *,
        kernel: str | Kernel | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int | None = None,
        alpha: float | str = 1.0,
        alphas: ArrayLike | None = None,
        mode: str = "primal",
        eps: float = 0.1,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        time_budget: float | None = None,
        memory_budget: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.sketch = sketch
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.alpha = alpha
        self.alphas = alphas
        self.mode = mode
        self.eps = eps
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the feature map and the ridge regression.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array of shape (n_samples,), default=None
            Weights, not negative. A weight of zero leaves a row out; if alpha is a number, whole
            weights repeat rows.

        Returns
        -------
        self : estimator
            The fitted regressor. A fit that fails leaves it as it was.
        """
        self._check_parameters()
        rows, targets = checked_targets(X, y, estimator=self)
        weights = checked_weights(sample_weight, rows)
        warn_of_outlying_targets(targets, weights)
        self._fit_rows(TrainingRows.of_positive_weight(rows, targets, weights), X)
        return self

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a block of rows; the first one fits the feature map.

        The solution is computed when it is asked for. It is that of all rows at once, with the
        map of the first block.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array of shape (n_samples,), default=None
            Weights, not negative.

        Returns
        -------
        self : estimator
            The regressor, with the new rows.
        """
        self._check_parameters()
        self._check_partial()
        rows, targets = checked_targets(X, y, estimator=self)
        weights = checked_weights(sample_weight, rows)
        warn_of_outlying_targets(targets, weights)
        self._add_rows(TrainingRows.of_positive_weight(rows, targets, weights), X)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return predictions.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            float32 for float32 rows, else float64.
        """
        return self._decision(X)

    def predict_std(self, X: Any) -> NDArray[Any]:
        """Return the standard deviation of the function f + b at every row, without the noise.

        Ridge regression is the mean of a Gaussian process with the prior covariance
        σ² / alpha · k and noise of variance σ² / w_i; this is the standard deviation of its
        posterior. σ² is estimated by the residuals, Σ w_i r_i² / (n − degrees of freedom). For
        the standard deviation of a new observation, add σ² to the square. What features cannot
        express of the kernel (k(x, x) − ‖z(x)‖², where that is positive) counts as unknown. The
        intercept has a flat prior. In mode "primal" only, with more rows than degrees of freedom.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.

        Returns
        -------
        std : ndarray of shape (n_samples,) or (n_samples, n_targets)
            float32 for float32 rows, else float64.
        """
        statistics = self._statistics("predict_std")
        if not self.alpha_ > 0.0:
            raise InputError(
                "predict_std needs alpha above 0, got 0: without a penalty there is no prior."
            )
        X = self._checked_new_rows(X)
        if "_posterior" not in vars(self):
            self._posterior = Posterior.of(
                statistics, self.alpha_, fit_intercept=self._solved().fit_intercept
            )
        values = np.empty((X.shape[0], *statistics.target_mean.shape))
        for part in map_blocks(self.sketch_, X, self._block_bytes):
            Z = features_of(self.sketch_, X[part]).astype(np.float64, copy=False)
            values[part] = np.sqrt(self._posterior.variances(Z, self._missing(X[part], Z)))
        return in_dtype_of_rows(values, X.dtype)

    def _missing(self, X: Any, Z: NDArray[np.float64]) -> NDArray[np.float64] | float:
        kernel = getattr(self.sketch_, "kernel_", None)
        if not isinstance(kernel, Kernel):
            return 0.0
        diagonal = kernel.diagonal(X).astype(np.float64)
        missing = diagonal - np.einsum("ij,ij->i", Z, Z)
        rounding = _ROUNDING * np.finfo(X.dtype).eps * diagonal
        return np.where(missing > rounding, missing, 0.0)

"""Parameters of kernels, read and set as in scikit-learn; gamma may come from the data."""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any, Self

import numpy as np

from powersketch.arrays import Float64, Rows, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.kernels.rows import (
    MatrixLike,
    mean_length,
    squared_distances_of_pairs,
)
from powersketch.parameters import Gamma, check_parameter_names, checked_gamma
from powersketch.routines import row_moments, squared_norms
from powersketch.validation import checked_matrix

_RULES = {
    "scale": ("1 / (n_features * variance of X)", "variance"),
    "median": ("1 / (median squared distance of the rows of X)", "median squared distance"),
}
_BLOCK_BYTES = 4 << 20
# The median is over all pairs of this many rows, fewer if rows are long.
_MOST_ROWS = 256
_FEWEST_ROWS = 16
_MOST_ENTRIES = 1 << 25


class KernelParameters:
    """A base class: parameters are those of the constructor, kept under the same names."""

    def resolve(self, X: MatrixLike) -> Self:
        """Return the kernel with numbers for all parameters that depend on the data.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers. With ``gamma="scale"``, gamma is 1 / (d · variance of X). With
            ``gamma="median"``, it is one over the median of all squared distances between
            different rows, among at most 256 of them.

        Returns
        -------
        Kernel
            A new one, which :meth:`set_params` of this one does not change: fitted estimators
            hold it.

        Examples
        --------
        >>> from powersketch.kernels import Gaussian
        >>> Gaussian("scale").resolve([[0.0, 1.0], [2.0, 1.0]])
        Gaussian(gamma=1.0)
        """
        gamma = getattr(self, "gamma", None)
        if not isinstance(gamma, str):
            return copy.copy(self)
        number = resolved_gamma(gamma, checked_matrix("X", X))
        return type(self)(**(self.get_params() | {"gamma": number}))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's `clone` and searches ask for them.

        Parameters
        ----------
        deep : bool, default=True
            Whether a parameter that is a kernel has its own parameters listed as well, as
            ``kernel__gamma``.

        Returns
        -------
        dict
            What the constructor takes.
        """
        own = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        if not deep:
            return own
        kernels = {
            name: value for name, value in own.items() if isinstance(value, KernelParameters)
        }
        return own | {
            f"{name}__{inner}": value
            for name, kernel in kernels.items()
            for inner, value in kernel.get_params().items()
        }

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place: all of them, or none if one is refused.

        Parameters
        ----------
        **params : dict
            Parameters of the constructor. In a search over the parameters of an estimator,
            ``kernel__gamma`` is the gamma of its kernel. A kernel inside of this one is replaced
            by a changed copy: others may hold it, too.

        Returns
        -------
        self : Kernel
            The kernel.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=3).set_params(coef0=1.0)
        Polynomial(degree=3, gamma=1.0, coef0=1.0)
        """
        changed = self.get_params(deep=False)
        of_kernels: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            outer, _, inner = name.partition("__")
            if inner and isinstance(params.get(outer, changed.get(outer)), KernelParameters):
                of_kernels.setdefault(outer, {})[inner] = value
            else:
                check_parameter_names(type(self).__name__, [name], changed)
                changed[name] = value
        for name, inner_params in of_kernels.items():
            changed[name] = copy.copy(changed[name]).set_params(**inner_params)
        self.__dict__.update(type(self)(**changed).__dict__)
        return self


def resolved_gamma(gamma: Gamma, X: Rows) -> float:
    """Return gamma as a number, by its rule from the rows: the same bits on every machine.

    With "scale", scikit-learn's rule, it is 1 / (n_features · variance of all entries). With
    "median" it is one over the median of ‖x − y‖², which a few outliers do not move, over pairs
    of different rows among at most 256 evenly spaced ones. If all entries or all rows are equal,
    it is 1.
    """
    gamma = checked_gamma(gamma)
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        raise InputError(
            "gamma='auto' is chosen by the errors of predictions, which only SketchedKernelRidge "
            "and its classifier do: use 'scale' or 'median' here, or a number."
        )
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    with np.errstate(over="ignore"):
        spread = _median_squared_distance(X) if gamma == "median" else _entry_variance(X)
    size = spread if gamma == "median" else X.shape[1] * spread
    if size == 0.0:
        return 1.0
    inverse = 1.0 / size
    if not (math.isfinite(inverse) and inverse > 0.0):
        (formula, name), shown = _RULES[gamma], 0.0 if math.isnan(spread) else spread
        raise InputError(
            f"gamma={gamma!r} is {formula}, and these rows have a {name} of {shown:.3g}, whose "
            "inverse float64 cannot hold: scale the columns of X, or give gamma as a number."
        )
    return inverse


def _entry_variance(X: Rows) -> float:
    """Return the variance of all entries of X in two passes.

    It is infinite if it exceeds float64, and NaN if the squares of all deviations underflow.
    """
    ones, count = np.ones(X.shape[1]), X.shape[0] * X.shape[1]
    step: int = _BLOCK_BYTES // (mean_length(X) * X.dtype.itemsize)
    parts = list(slices(X.shape[0], max(step, 1)))
    sums = np.concatenate([row_moments(_block(X, part), ones)[1] for part in parts])
    if not math.isfinite(float(np.abs(sums).sum())):
        return math.inf
    mean = math.fsum(sums) / count
    squares = np.concatenate([_squared_deviations(_block(X, part), mean) for part in parts])
    if not math.isfinite(float(squares.sum())):
        return math.inf
    # Entries that a sparse matrix does not store are zeros: they deviate by the mean itself.
    absent: int = count - X.nnz if is_sparse(X) else 0
    variance: float = (math.fsum(squares) + absent * mean * mean) / count
    return math.nan if variance == 0.0 and X.min() != X.max() else variance


def _squared_deviations(block: Rows, mean: float) -> Float64:
    deviations = block.astype(np.float64)
    entries = deviations.data if is_sparse(block) else deviations
    entries -= mean
    return squared_norms(deviations)


def _median_squared_distance(X: Rows) -> float:
    """Return the lower median of ‖x − y‖² over pairs of different rows.

    It is zero if all rows are equal, and NaN if the squares of all differences underflow.
    """
    fitting = math.isqrt(2 * _MOST_ENTRIES // mean_length(X))
    most = min(max(fitting, _FEWEST_ROWS), _MOST_ROWS, X.shape[0])
    sample = X[np.linspace(0, X.shape[0] - 1, most).astype(np.int64)].astype(np.float64)
    wanted = np.triu(np.ones((most, most), dtype=bool), 1)
    pairs = squared_distances_of_pairs(sample, sample, wanted)
    distances = np.concatenate([np.zeros(1), *(part for _, _, part in pairs)])
    apart = distances[distances > 0.0]
    if not apart.size:
        differences = sample - sample[np.zeros(most, dtype=np.int64)]
        return math.nan if abs(differences).max() > 0.0 else 0.0
    middle = (apart.size - 1) // 2
    return float(np.partition(apart, middle)[middle])


def _block(X: Rows, part: slice) -> Rows:
    return X[part] if is_sparse(X) else np.require(X[part], requirements=["C", "A"])

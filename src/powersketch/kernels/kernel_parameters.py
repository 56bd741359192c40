"""Parameters of kernels, read and set as in scikit-learn; gamma may come from the data."""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any, Self

import numpy as np

from powersketch.arrays import Rows, is_sparse
from powersketch.exceptions import InputError
from powersketch.kernels.entry_moments import EntryMoments
from powersketch.kernels.rows import (
    MatrixLike,
    mean_length,
    squared_distances_of_pairs,
)
from powersketch.parameters import Gamma, check_parameter_names, checked_gamma
from powersketch.validation import checked_matrix

_RULES = {
    "scale": ("1 / (n_features * variance of X)", "variance"),
    "median": ("1 / (median squared distance of the rows of X)", "median squared distance"),
}
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
    if gamma == "scale":
        return _inverse(gamma, EntryMoments.of(X).variance, X.shape[1])
    with np.errstate(over="ignore"):
        return _inverse(gamma, _median_squared_distance(X))


def asks_for_scale(kernel: Any) -> bool:
    """Tell whether gamma="scale" is to be resolved, for which all rows have to be seen."""
    return bool(_gammas_at_scale(kernel))


def at_scale(kernel: Any, moments: EntryMoments | None) -> Any:
    """Return the kernel with a number for gamma="scale", by the moments of all rows.

    Everything else is still to be resolved, by rows that may be some of them. With moments of
    None, so is this.
    """
    names = _gammas_at_scale(kernel)
    if moments is None or not names:
        return kernel
    number = _inverse("scale", moments.variance, moments.columns)
    return copy.copy(kernel).set_params(**dict.fromkeys(names, number))


def _gammas_at_scale(kernel: Any) -> list[str]:
    if not isinstance(kernel, KernelParameters):
        return []
    gammas = {
        name: value
        for name, value in kernel.get_params().items()
        if name.rpartition("__")[2] == "gamma"
    }
    return [name for name, value in gammas.items() if isinstance(value, str) and value == "scale"]


def _inverse(gamma: str, spread: float, columns: int = 1) -> float:
    """Return one over the spread of so many columns; one if there is none."""
    size = columns * spread
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

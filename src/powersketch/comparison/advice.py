"""What is odd about a kernel on these rows, and what to do about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.arrays import Float64, is_sparse
from powersketch.kernels import Gaussian, Kernel, resolved_gamma
from powersketch.pages import number_text

# Shares of the norm of the kernel of rows that were brought to length one: without its mean, and
# without its diagonal.
_NEARLY_CONSTANT = 0.01
_NEARLY_IDENTITY = 0.3
# Columns whose spreads differ by more than this: those of the least have no say in any distance.
_UNEVEN = 100.0
_REMEDY_OF_COLUMNS = "scale the columns to equal spread (sklearn's StandardScaler, --scale)"


def remarks_on(kernel: Kernel, K: Float64, X: Any) -> tuple[str, ...]:
    """Return a sentence for everything that makes the kernel say little about the rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    K : ndarray of shape (n, n)
        Its matrix on some rows, up to a factor.
    X : array or sparse matrix
        The rows.

    Returns
    -------
    tuple of str
        Empty where all is well.
    """
    remarks = []
    cosines = _cosines(K)
    size = float(np.linalg.norm(cosines))
    off_diagonal = cosines - np.diag(np.diagonal(cosines))
    if np.linalg.norm(cosines - cosines.mean()) < _NEARLY_CONSTANT * size:
        remarks.append(
            f"{_short(kernel)} is nearly constant on these rows: it hardly tells one row from "
            f"another, and small errors of it say nothing. {_constant_remedy(kernel, X)}"
        )
    elif len(K) > 1 and np.linalg.norm(off_diagonal) < _NEARLY_IDENTITY * size:
        remarks.append(
            f"{_short(kernel)} is nearly the identity on these rows: every row is alike to itself "
            "only, and no map with fewer features than rows comes close to that. "
            f"{_identity_remedy(kernel, X)}"
        )
    ratio = _spread_ratio(X)
    if ratio > _UNEVEN:
        remarks.append(
            f"The spreads of the columns differ by a factor of {number_text(ratio)}: those of "
            f"large numbers decide alone; {_REMEDY_OF_COLUMNS}, unless their units are the same."
        )
    return tuple(remarks)


def _cosines(K: Float64) -> Float64:
    """Return the kernel of rows that were brought to length one; zero rows stay zero."""
    lengths = np.sqrt(np.maximum(np.diagonal(K), 0.0))
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return K * inverse * inverse[:, np.newaxis]


def _short(kernel: Kernel) -> str:
    return f"The {type(kernel).__name__} kernel"


def _constant_remedy(kernel: Kernel, X: Any) -> str:
    if isinstance(kernel, Gaussian):
        return f"Its gamma is too small: {_usual_gamma(kernel, X)}."
    return f"Subtract the mean of every column, or {_REMEDY_OF_COLUMNS}."


def _identity_remedy(kernel: Kernel, X: Any) -> str:
    if isinstance(kernel, Gaussian):
        return f"Its gamma is too large: {_usual_gamma(kernel, X)}."
    return "Take a lower degree or depth, or add a constant term (coef0)."


def _usual_gamma(kernel: Gaussian, X: Any) -> str:
    usual = resolved_gamma("median", X)
    return (
        f"1 / (median squared distance) is {number_text(usual)}, and gamma is "
        f"{number_text(float(kernel.gamma))}; try gamma='median'"
    )


def _spread_ratio(X: Any) -> float:
    """Return how much the spreads of columns differ; of sparse rows, those of stored entries."""
    if is_sparse(X):
        return 1.0
    spreads = np.std(np.asarray(X, dtype=np.float64), axis=0)
    filled = spreads[spreads > 0.0]
    return float(filled.max() / filled.min()) if filled.size else 1.0

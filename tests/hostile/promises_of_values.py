"""Promises about single results: finite, refused where they must be, exact where they are exact."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from powersketch.kernels import Gaussian
from tests.hostile.matrices import Matrix
from tests.hostile.outcomes import demand
from tests.hostile.subjects import KernelSubject, MapSubject, SolverSubject, Subject

Float64 = NDArray[np.float64]

# Of norms and kernel values, which pass through up to a hundred roundings on their way.
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 2e-4}


def results_are_finite(subject: Subject, matrix: Matrix, seed: int) -> None:
    """Every number is finite, or the rows are refused with a clear error and without warnings."""
    X = matrix.rows(seed)
    values = subject.apply(subject.fit(X), X)
    bad = np.argwhere(~np.isfinite(values))
    demand(bad.size == 0, f"{len(bad)} numbers are not finite, the first at {bad[:1].tolist()}")


def bad_rows_are_refused(subject: Subject, matrix: Matrix, seed: int) -> None:
    """Rows that mean nothing are refused by `fit`, or where nothing is fitted, by the call."""
    X = matrix.rows(seed)
    fitted = subject.fit(X)
    if isinstance(subject, KernelSubject | SolverSubject):
        subject.apply(fitted, X)


def bad_new_rows_are_refused(subject: Subject, matrix: Matrix, seed: int) -> None:
    """The same for `transform` and `predict` of something that was fitted to good rows."""
    bad = matrix.rows(seed)
    good = np.random.default_rng(seed).normal(size=(30, 12)) / 4.0
    subject.apply(subject.fit(within(good, subject)), bad)


def diagonal_is_exact(subject: MapSubject, matrix: Matrix, seed: int) -> None:
    """⟨z, z⟩ = k(x, x): every row keeps its norm, be it sparse, tiny or huge."""
    X = within(matrix.rows(seed), subject)
    sketch = subject.fit(X)
    Z = sketch.transform(X)
    rows = X.toarray() if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.sqrt(subject.case.expected_diagonal(sketch, rows))
    if not np.isfinite(expected).all():
        return
    errors = np.abs(norms(Z) - expected)
    smallest = np.sqrt(float(np.finfo(Z.dtype).tiny) * Z.shape[1])
    allowed = TOLERANCE[Z.dtype] * expected + smallest
    worst = int(np.argmax(errors - allowed))
    demand(
        (errors <= allowed).all(),
        f"{int((errors > allowed).sum())} of {len(Z)} rows lose their norm: row {worst} has "
        f"{norms(Z)[worst]:.6g} instead of {expected[worst]:.6g}",
    )


def kernel_is_positive(subject: KernelSubject, matrix: Matrix, seed: int) -> None:
    """K is symmetric, its cosines are at most one, and no eigenvalue is below zero."""
    X = matrix.rows(seed)
    K = subject.kernel(X, dtype=np.float64)
    diagonal = subject.kernel.diagonal(X)
    demand(np.array_equal(K, K.T), "the matrix is not symmetric")
    demand(np.array_equal(np.diag(K).astype(diagonal.dtype), diagonal), "diagonal() differs")
    demand((np.diag(K) >= 0.0).all(), "a diagonal entry is negative")
    cosines = normalised(K)
    worst = float(np.abs(cosines).max())
    demand(worst <= 1.0 + 1e-9, f"|k(x, y)| is {worst:.12g} times the root of k(x, x) k(y, y)")
    least = float(np.linalg.eigvalsh(cosines)[0])
    demand(least >= -1e-9 * len(K), f"the normalised matrix has the eigenvalue {least:.3g}")


def gaussian_is_translation_invariant(subject: KernelSubject, matrix: Matrix, seed: int) -> None:
    """Moving all rows changes nothing, if the moved rows are exact."""
    X = matrix.rows(seed)
    X = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    largest = float(np.abs(X).max())
    if not 1e-140 < largest < 1e140:
        return
    unit = 2.0 ** (np.floor(np.log2(largest)) - 20)
    X = np.round(X / unit) * unit
    kernel = Gaussian(1.0 / max(float(np.var(X)) * X.shape[1], unit**2))
    moved = kernel(X + 2.0**20 * unit * np.arange(1, X.shape[1] + 1))
    error = float(np.abs(moved - kernel(X)).max())
    demand(error <= 1e-7, f"entries change by {error:.3g}")


def residual_is_told(subject: SolverSubject, matrix: Matrix, seed: int) -> None:
    """A solution that is accepted without a warning solves the exact system to the tolerance."""
    X = matrix.rows(seed)
    parameters = subject.fit(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = subject.apply(parameters, X)
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        return
    y = parameters["y"]
    K = subject.kernel(X, dtype=np.float64) + parameters["alpha"] * np.eye(len(y))
    with np.errstate(over="ignore", invalid="ignore"):
        residual = float(np.linalg.norm(K @ x - y))
        rounding = 1e-15 * len(y) * float(np.linalg.norm(np.abs(K) @ np.abs(x)))
    allowed = 2e-6 * float(np.linalg.norm(y)) + rounding
    demand(residual <= allowed, f"the residual is {residual:.3g}, at most {allowed:.3g} was told")


def within(X: Any, subject: Subject) -> Any:
    """Return the rows, shortened where the subject takes short ones only."""
    if not np.isfinite(subject.largest_norm):
        return X
    largest = float(abs(X).max())
    if largest == 0.0:
        return X
    near_one = X / largest
    longest = float(norms(near_one.toarray() if sp.issparse(X) else near_one).max())
    return near_one * (0.999 * subject.largest_norm / longest)


def norms(Z: Any) -> Float64:
    """Return the norm of every row without over- or underflow on the way."""
    largest = np.abs(Z).max(axis=1, initial=0.0).astype(np.float64)
    scale = np.where(largest > 0.0, largest, 1.0)
    near_one = Z.astype(np.float64) / scale[:, np.newaxis]
    lengths: Float64 = scale * np.linalg.norm(near_one, axis=1)
    return lengths


def normalised(K: Float64) -> Float64:
    """Return K divided by the roots of its diagonal; rows of zeros stay."""
    roots = np.sqrt(np.diag(K))
    roots = np.where(roots > 0.0, roots, 1.0)
    return K / roots / roots[:, np.newaxis]

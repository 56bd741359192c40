"""Promises that something changes nothing: splits, threads, containers, a fit that failed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tests.hostile.containers import Container
from tests.hostile.matrices import Matrix
from tests.hostile.outcomes import demand, is_clear_refusal
from tests.hostile.promises_of_values import within
from tests.hostile.subjects import MapSubject, Subject

Array = NDArray[Any]

# Where BLAS sums: relative to the largest number of the result.
_ROUNDING = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-3}


def splits_change_nothing(subject: Subject, matrix: Matrix, seed: int) -> None:
    """Rows transformed in parts are those transformed at once."""
    X = within(matrix.rows(seed), subject)
    fitted = subject.fit(X)
    count = X.shape[0]
    cuts = sorted({0, count, *np.random.default_rng(seed).integers(0, count + 1, 3).tolist()})
    parts = [subject.apply(fitted, X[first:last]) for first, last in pairwise(cuts)]
    # Predictions near zero are sums of targets near one.
    least_scale = 1.0 if subject.family == "ridge" else 0.0
    whole = subject.apply(fitted, X)
    _compare(np.concatenate(parts), whole, exactly=subject.same_bits, least_scale=least_scale)


def threads_change_nothing(subject: Subject, matrix: Matrix, seed: int) -> None:
    """One thread and several give the same, in `fit` and in what follows it."""
    X = within(matrix.rows(seed, rows=150), subject)
    one, several = (subject.apply(subject.fit(X, n_jobs=n), X) for n in (1, 3))
    _compare(several, one, exactly=subject.same_bits_threads)


def is_held_exactly(subject: Subject, container: Container) -> bool:
    """Tell whether the container holds the same numbers for this subject, and as many of them."""
    # Whole numbers are too long for a series with a radius.
    fits = np.isfinite(subject.largest_norm) <= (container.numbers == "quarters")
    # The length of a sketch follows from the number of stored entries.
    counts = "sketched" in subject.name and container.name == "stored_zeros"
    return bool(fits) and not counts


def containers_change_nothing(subject: Subject, container: Container, seed: int) -> None:
    """The same numbers give the same results, whatever holds them; nothing is written to."""
    plain = within(container.rows(seed), subject)
    if np.isfinite(subject.largest_norm):
        plain = np.floor(plain * 2**12) / 2**12  # shortened rows, in few digits again
    packed = container.pack(plain)
    reference = sp.csr_array(plain) if sp.issparse(packed) else plain
    before = _copied(packed)
    found = subject.apply(subject.fit(packed), packed)
    # With more stored entries an SRHT sums in another order.
    exactly = subject.same_bits and (container.name != "stored_zeros" or _sums_in_order(subject))
    _compare(found, subject.apply(subject.fit(reference), reference), exactly=exactly)
    demand(_same(packed, before), "the user's rows were changed")
    if sp.issparse(packed) and isinstance(subject, MapSubject):
        fitted = subject.fit(plain)
        exactly = subject.same_bits and _sums_in_order(subject)
        _compare(subject.apply(fitted, packed), subject.apply(fitted, plain), exactly=exactly)


def failed_fit_leaves_the_last_one(subject: Subject, matrix: Matrix, seed: int) -> None:
    """After a fit that was refused, everything is as before."""
    good = within(np.random.default_rng(seed).normal(size=(30, 12)) / 4.0, subject)
    fitted = subject.fit(good)
    before, attributes = subject.apply(fitted, good), dict(vars(fitted))
    try:
        subject.refit(fitted, matrix.rows(seed))
    except Exception as error:
        demand(is_clear_refusal(error), f"{type(error).__name__}: {error}")
    else:
        return
    changed = [name for name, value in attributes.items() if vars(fitted).get(name) is not value]
    demand(not changed, f"attributes changed: {changed}")
    _compare(subject.apply(fitted, good), before, exactly=True)


def _sums_in_order(subject: Subject) -> bool:
    return isinstance(subject, MapSubject) and subject.case.same_bits_sparse


def _compare(found: Array, expected: Array, *, exactly: bool, least_scale: float = 0.0) -> None:
    demand(found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}")
    demand(found.dtype == expected.dtype, f"dtype {found.dtype} instead of {expected.dtype}")
    if np.array_equal(found, expected):
        return
    scale = max(float(np.abs(expected).max()), least_scale)
    error = float(np.abs(found - expected).max())
    demand(not exactly, f"bits differ, by up to {error:.3g} (largest number {scale:.3g})")
    allowed = _ROUNDING[expected.dtype] * scale
    demand(error <= allowed, f"numbers differ by up to {error:.3g} (largest number {scale:.3g})")


def _copied(X: Any) -> Any:
    return [list(row) for row in X] if isinstance(X, list | tuple) else X.copy()


def _same(X: Any, before: Any) -> bool:
    if sp.issparse(X):
        parts = [part for part in ("data", "indices", "indptr", "row", "col") if hasattr(X, part)]
        return all(np.array_equal(getattr(X, p), getattr(before, p)) for p in parts)
    return bool(np.array_equal(np.asarray(X), np.asarray(before)))

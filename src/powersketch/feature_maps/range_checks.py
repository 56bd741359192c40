"""Says so where a map is worse on new rows than one that does not look at the data would be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, divide_or_zero, is_sparse
from powersketch.exceptions import RangeWarning, warn_user
from powersketch.feature_maps.row_maps import OUT_OF_RANGE, UNUSUAL, WITHOUT_SERIES, RowMap
from powersketch.feature_maps.selection import features_of_few

_WORSE = 1.3  # a little less than what users are promised: only some rows are measured
_NEGLIGIBLE = 1e-4  # norms of features beside those of others: errors of such rows do not count
_FEWEST_MEASURED, _MOST_MEASURED = 8, 64


def check_range(
    X: Rows,
    Z: Real,
    strangeness: NDArray[np.int8],
    kernel: Callable[[Rows], Real],
    safe_map: RowMap | None,
    remedy: str,
) -> None:
    """Warn of rows so unlike those given to fit that the safe map would be clearly better.

    Both are measured on some of the rows, if there are enough for it.
    """
    strange = strangeness >= OUT_OF_RANGE
    too_long = bool(np.any(strangeness == WITHOUT_SERIES))
    measurable = safe_map is not None and X.shape[0] >= _FEWEST_MEASURED
    if not strange.any():
        if not measurable or 2 * np.count_nonzero(strangeness >= UNUSUAL) <= X.shape[0]:
            return
        strange[:] = True
    figures = ""
    if safe_map is not None and measurable and not too_long:
        error, safe_error = _measured_errors(X, Z, strange, kernel, safe_map)
        if not error > _WORSE * safe_error:
            return
        figures = f", a relative error of {error:.2g} instead of {safe_error:.2g} for some of them"
    rows = np.flatnonzero(strange)
    warn_user(
        f"{len(rows)} of {X.shape[0]} rows, the first of them row {rows[0]}, are so unlike the "
        f"rows given to fit that their features are not accurate{figures}: fit on rows like these"
        f"{'' if too_long else f', or use {remedy}'}.",
        RangeWarning,
    )


def _measured_errors(
    X: Rows,
    Z: Real,
    strange: NDArray[np.bool_],
    kernel: Callable[[Rows], Real],
    safe_map: RowMap,
) -> tuple[float, float]:
    """Return the errors in the kernel of some strange rows with these and with others."""
    first = _spread(np.flatnonzero(strange), _MOST_MEASURED)
    others = _spread(np.flatnonzero(~strange), _MOST_MEASURED - len(first))
    rows = X[np.concatenate([first, others])]
    rows = rows if is_sparse(X) else np.ascontiguousarray(rows)
    K = kernel(rows).astype(np.float64)
    features = Z[np.concatenate([first, others])], features_of_few(safe_map, rows, Z.shape[1])
    root = np.sqrt(max(float(np.max(K.diagonal())), np.finfo(np.float64).tiny))
    norms = np.sqrt(K.diagonal())
    if float(norms[: len(first)].max()) <= _NEGLIGIBLE * float(norms.max()):
        return 0.0, 0.0
    # As they are, and all of norm one: the former is what users measure, the latter what they mean.
    scales = (
        np.full_like(norms, 1.0 / root),
        divide_or_zero(1.0, norms),
    )
    pairs = [_errors(features, K, scale[:, None], len(first)) for scale in scales]
    return max(pairs, key=lambda pair: pair[0] / max(pair[1], np.finfo(np.float64).tiny))


def _errors(features: tuple[Real, Real], K: Real, scale: Real, count: int) -> tuple[float, float]:
    # Of the smallest numbers nothing can be said: their errors are not comparable, either.
    with np.errstate(over="ignore", invalid="ignore"):
        K = scale * K * scale.T
        size = float(np.linalg.norm(K[:count])) or 1.0
        chosen, safe = (
            float(np.linalg.norm((scale * Z @ (scale * Z).T - K)[:count])) for Z in features
        )
        return chosen / size, safe / size


def _spread(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return up to so many of the rows, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64)]

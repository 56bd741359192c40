"""The power series that a user means by a name, an array or a callable."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels.series.contour import callable_series
from powersketch.kernels.series.finite import CoefficientSeries
from powersketch.kernels.series.named import NAMED_SERIES
from powersketch.kernels.series.power_series import PowerSeries

__all__ = ["as_power_series"]


def as_power_series(series: Any, radius: float = 1.0) -> PowerSeries:
    r"""Return the power series that is meant by a name, coefficients or a callable.

    Parameters
    ----------
    series : str, array-like, callable or PowerSeries
        A key of ``NAMED_SERIES``, coefficients :math:`C_0, \dots, C_n`, a callable that takes
        complex arrays, or a power series, which is returned as it is.
    radius : float, default=1.0
        For a callable only: the largest ``|⟨x, y⟩|``, that is, the largest squared norm of the
        data.

    Returns
    -------
    PowerSeries
        With coefficients that are not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.kernels.series import as_power_series
    >>> as_power_series("cosh").coefficients(4)
    array([1.        , 0.        , 0.5       , 0.        , 0.04166667])
    >>> as_power_series([0.5, 0.0, 2.0]).value(3.0)
    array(18.5)
    >>> as_power_series(np.exp).coefficients(3)
    array([1.        , 1.        , 0.5       , 0.16666667])
    """
    if isinstance(series, PowerSeries):
        return series
    if isinstance(series, str):
        if series not in NAMED_SERIES:
            raise InputError(f"series={series!r} is unknown; {_allowed()}.")
        return NAMED_SERIES[series]
    if callable(series):
        return callable_series(series, radius)
    if isinstance(series, list | tuple | np.ndarray):
        return CoefficientSeries(series)
    raise InputTypeError(f"series={series!r} is a {type(series).__name__}; {_allowed()}.")


def _allowed() -> str:
    names = ", ".join(repr(name) for name in NAMED_SERIES)
    return (
        f"allowed are the names {names}, an array of coefficients C_0, ..., C_n, a callable that "
        "takes complex NumPy arrays, or a PowerSeries"
    )

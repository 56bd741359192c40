"""Exact kernels that are functions of the inner product."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powersketch.arrays import Float64, Rows
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels.kernel import Kernel
from powersketch.kernels.rows import with_squared_norms
from powersketch.kernels.series import NAMED_SERIES, CoefficientSeries, PowerSeries, callable_series
from powersketch.kernels.series.closed_forms import RescaledSeries
from powersketch.kernels.series.contour import slopes_of, values_of
from powersketch.kernels.tiles import Preparation, Prepared
from powersketch.parameters import Gamma, checked_gamma
from powersketch.storable import storable

# Rows of norm one are so up to a few roundings, which must not put them outside the disk.
_TOLERANCE_IN_ROUNDINGS = 64


@storable
@dataclass(frozen=True, eq=False)
class DotProduct(Kernel):
    r"""The kernel :math:`k(x, y) = \kappa(\gamma \langle x, y \rangle)` of a power series.

    With :math:`\kappa(t) = \sum_l C_l t^l` it is positive definite in every dimension if and only
    if no :math:`C_l` is negative.

    Parameters
    ----------
    series : str, array-like, callable or PowerSeries, default="exp"
        :math:`\kappa`: a name out of ``"exp"``, ``"cosh"``, ``"sinh"``, ``"inverse"``
        :math:`1 / (1 - t)`, ``"inverse_sqrt"`` :math:`(1 - t)^{-1/2}`, ``"log"``
        :math:`-\log(1 - t)` and ``"arcsin"``; coefficients :math:`C_0, \dots, C_n`; a callable that
        takes arrays, real ones for the kernel and complex ones for its series; or a power series.
    gamma : float, "scale" or "median", default=1.0
        Positive factor of the inner product. The names stand for numbers that :meth:`resolve`
        takes from the data.

    Notes
    -----
    A series that converges in a disk only, such as ``"inverse"``, takes rows for which
    :math:`\gamma \|x\|^2` is inside. The coefficients of a callable are looked at by
    :meth:`power_series` only: until then nothing says that the kernel is positive definite.

    Examples
    --------
    >>> from powersketch.kernels import DotProduct
    >>> X = [[0.5, 0.5], [0.0, 1.0]]
    >>> DotProduct("exp")(X).round(6)
    array([[1.648721, 1.648721],
           [1.648721, 2.718282]])
    >>> DotProduct([1.0, 0.0, 4.0]).diagonal(X)
    array([2., 5.])
    >>> DotProduct(lambda t: 1 / (2 - t))(X, [[1.0, 0.0]])
    array([[0.66666667],
           [0.5       ]])
    """

    series: Any = "exp"
    gamma: Gamma = 1.0
    _unscaled: PowerSeries | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", checked_gamma(self.gamma))
        unscaled = None if callable(self.series) else as_power_series(self.series)
        object.__setattr__(self, "_unscaled", unscaled)

    def power_series(self, radius: float = 1.0) -> PowerSeries:
        """Return the power series in the inner product.

        Parameters
        ----------
        radius : float, default=1.0
            For a callable only: the largest squared norm of the data.

        Returns
        -------
        PowerSeries
            With coefficients that are not negative.

        Raises
        ------
        ValueError
            Where a callable has a negative coefficient or is not analytic in the disk.

        Examples
        --------
        >>> DotProduct("exp").power_series().coefficients(3)
        array([1.        , 1.        , 0.5       , 0.16666667])
        """
        self._check_resolved()
        gamma, series = self.gamma, self._unscaled
        if series is None:
            series = as_power_series(self.series, gamma * radius)
        return series if gamma == 1.0 else RescaledSeries(series, gamma)

    def profile(self, products: ArrayLike) -> Float64:
        """Return the function of the inner product.

        Parameters
        ----------
        products : array-like
            Inner products; beyond the radius of convergence they count as at it.

        Returns
        -------
        ndarray
            Of the same shape.

        Examples
        --------
        >>> DotProduct("exp").profile([0.0, 1.0]).round(4)
        array([1.    , 2.7183])
        """
        self._check_resolved()
        return self._evaluated(np.asarray(products, dtype=np.float64))

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        roundings = max(np.finfo(X.dtype).eps, np.finfo(Y.dtype).eps)
        return partial(self._checked_rows, tolerance=_TOLERANCE_IN_ROUNDINGS * float(roundings))

    def _checked_rows(self, X: Rows, rows: slice, tolerance: float) -> Prepared:
        block, norms = with_squared_norms(X, rows)
        series = None if self._unscaled is None else self.power_series()
        if series is not None and not series.contains(norms, tolerance):
            raise InputError(
                f"the squared norm of a row is {norms.max():.6g}; {self} converges in the disk of "
                f"radius {series.radius:.6g}: scale X and Y down."
            )
        return block, norms

    def _values(self, products: Float64, left: Float64, right: Float64) -> Float64:
        return self._evaluated(products)

    def _derivatives(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64]:
        if self._unscaled is None:
            slopes = self.gamma * slopes_of(self.series, self.gamma * products)
        else:
            series = self.power_series()
            slopes = series.derivative(np.clip(products, -series.radius, series.radius))
        return slopes, np.zeros_like(products)

    def _diagonal_values(self, sizes: Float64) -> Float64:
        return self._evaluated(sizes)

    def _evaluated(self, products: Float64) -> Float64:
        if self._unscaled is None:
            return values_of(self.series, self.gamma * products)
        series = self.power_series()
        return series.value(np.clip(products, -series.radius, series.radius))


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
    >>> from powersketch.kernels.dot_product import as_power_series
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

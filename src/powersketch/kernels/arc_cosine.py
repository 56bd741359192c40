"""The exact arc-cosine kernels [CS09]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from powersketch.kernels.kappa import kappa_0, kappa_1, kappa_2
from powersketch.kernels.kernel import CosineKernel
from powersketch.kernels.rows import Float64, Rows, inner_products, pairs_near_one
from powersketch.kernels.series import arc_cosine_series
from powersketch.parameters import checked_integer, checked_positive

if TYPE_CHECKING:
    from powersketch.kernels.series import PowerSeries

__all__ = ["ArcCosine", "kappa_0", "kappa_1", "kappa_2"]

_KAPPAS: tuple[Callable[[ArrayLike], Float64], ...] = (kappa_0, kappa_1, kappa_2)
_PEAKS = (1.0, 1.0, 3.0)


@dataclass(frozen=True)
class ArcCosine(CosineKernel):
    r"""The arc-cosine kernel of order n, that of a wide network with activation max(0, t)^n.

    One layer is :math:`k_1(x, y) = (\|x\| \|y\|)^n \kappa_n(\cos\angle(x, y))`; a further one is

    .. math:: k_{h+1}(x, y) = (k_h(x, x)\, k_h(y, y))^{n/2}\, \kappa_n(\rho_h), \quad
              \rho_h = k_h(x, y) / \sqrt{k_h(x, x)\, k_h(y, y)}.

    :math:`\kappa_n` is normalised as twice an expectation over standard normal weights, so that
    :math:`\kappa_0(1) = \kappa_1(1) = 1` and :math:`\kappa_2(1) = 3`. A zero row has no angle: its
    entries are zero, for order 0 too.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        The exponent n: steps, rectified linear units or their squares.
    depth : int, default=1
        The number of hidden layers, at least 1.

    Notes
    -----
    Order 0 has square-root singularities where the cosine is 1 or -1. Equal rows have exactly the
    cosine 1; but rows whose directions differ by rounding errors only differ by 1e-8 in the
    kernel of one layer, and by the square root of that in the kernel of two.

    Examples
    --------
    >>> from powersketch.kernels import ArcCosine
    >>> X = [[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]]
    >>> ArcCosine()(X).round(6)
    array([[25.      ,  8.271197,  0.      ],
           [ 8.271197,  4.      ,  0.      ],
           [ 0.      ,  0.      ,  0.      ]])
    >>> ArcCosine(order=2, depth=2).diagonal(X)
    array([1.0546875e+07, 6.9120000e+03, 0.0000000e+00])
    """

    order: int = 1
    depth: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", checked_integer("order", self.order, 0, 2))
        object.__setattr__(self, "depth", checked_integer("depth", self.depth, 1))

    def power_series(self) -> PowerSeries:
        """Return the kernel of rows of norm one as a power series of their cosine.

        Returns
        -------
        PowerSeries
            That of :meth:`profile`.

        Examples
        --------
        >>> ArcCosine(order=1).power_series().coefficients(4).round(6)
        array([0.31831 , 0.5     , 0.159155, 0.      , 0.013263])
        """
        return arc_cosine_series(self.order, self.depth)

    def profile(self, cosines: ArrayLike, squared_norm: float = 1.0) -> Float64:
        """Return the kernel of two rows of the same norm as a function of their cosine.

        Parameters
        ----------
        cosines : array-like
            What lies outside [-1, 1] counts as the nearer end.
        squared_norm : float, default=1.0
            The squared norm of both rows, positive and finite.

        Returns
        -------
        ndarray of the same shape
            In float64.

        Examples
        --------
        >>> ArcCosine(order=1).profile([-1.0, 0.0, 1.0]).round(6)
        array([0.     , 0.31831, 1.     ])
        """
        squared_norm = checked_positive("squared_norm", squared_norm)
        scale = self._scales(np.asarray(self._magnitudes(np.asarray(squared_norm))))
        return scale * self._correlations(cosines, self.depth)

    def _products(self, left: Rows, right: Rows) -> Float64:
        """Return the cosines; for order 0, ±(1 + angle / π) where the angle is next to nothing.

        The cosine of an angle of 1e-8 is one, and further layers take roots of what is lost.
        """
        if self.order > 0:
            return super()._products(left, right)
        products = inner_products(left, right)
        for rows, columns, signs, distances in pairs_near_one(products, left, right):
            angles = 2.0 * np.arcsin(np.minimum(0.5 * np.sqrt(distances), 1.0))
            products[rows, columns] = signs * (1.0 + angles / math.pi)
        return products

    def _values(self, products: Float64, left: Float64, right: Float64) -> Float64:
        magnitudes = self._magnitudes(left)[:, np.newaxis] * self._magnitudes(right)
        values = self._scales(magnitudes)
        if self.order > 0:
            values *= self._correlations(products, self.depth)
            return values
        first, excess = kappa_0(products), np.abs(products) - 1.0
        tiny = excess > 0.0
        first[tiny] = np.where(products[tiny] > 0.0, 1.0 - excess[tiny], excess[tiny])
        values *= self._correlations(first, self.depth - 1)
        return values

    def _diagonal_values(self, sizes: Float64) -> Float64:
        return self._scales(self._magnitudes(sizes) ** 2)

    def _magnitudes(self, norms: Float64) -> Float64:
        """Return what the kernel still knows of a row's norm: for order 0 whether it is zero."""
        return np.sign(norms) if self.order == 0 else norms

    def _scales(self, magnitudes: Float64) -> Float64:
        """Return √(k(x, x) k(y, y)) from ‖x‖ ‖y‖."""
        scales = magnitudes
        for _ in range(self.depth):
            scales = _PEAKS[self.order] * scales ** max(self.order, 1)
        return scales

    def _correlations(self, cosines: ArrayLike, layers: int) -> Float64:
        """Return the cosine of two rows after so many layers."""
        kappa, peak = _KAPPAS[self.order], _PEAKS[self.order]
        for _ in range(layers):
            cosines = kappa(cosines) / peak
        return np.asarray(cosines)

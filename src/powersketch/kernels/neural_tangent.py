"""The exact neural tangent kernel [JGH18] of a network of rectified linear units, its series."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from powersketch.arrays import Float64, Rows, scaled_rows
from powersketch.kernels.arc_cosine import CosineKernel, inverse_sines, kappa_0, kappas_0_and_1
from powersketch.kernels.rows import appended, normalised
from powersketch.kernels.series import PowerSeries
from powersketch.kernels.series.layers import (
    LayeredSeries,
    PositiveSeries,
    kappas_at,
    kappas_of,
)
from powersketch.kernels.series.power_series import wide_decimals
from powersketch.kernels.tiles import Preparation, Prepared
from powersketch.parameters import (
    checked_integer,
    checked_non_negative,
    checked_positive,
    checked_truth,
)
from powersketch.storable import storable


@storable
@dataclass(frozen=True)
class NeuralTangent(CosineKernel):
    r"""The neural tangent kernel of infinitely wide layers of rectified linear units.

    With weight variance w, bias variance b and :math:`\kappa_0, \kappa_1` as in
    :class:`ArcCosine`, start from :math:`S_0 = T_0 = \frac{w}{2} \langle x, y \rangle + b`. Every
    hidden layer takes :math:`\rho = S(x, y) / \sqrt{S(x, x) S(y, y)}` and gives

    .. math:: S' = \tfrac{w}{2} \sqrt{S(x, x) S(y, y)}\, \kappa_1(\rho) + b, \quad
              T' = S' + \tfrac{w}{2}\, \kappa_0(\rho)\, T.

    The kernel is T after the last one. With w = 2 and b = 0 it is
    :math:`\|x\| \|y\| K_L(\cos\angle(x, y))` with :math:`K_L(1) = L + 1` for L hidden layers.

    Parameters
    ----------
    depth : int, default=1
        The number of hidden layers, at least 1.
    train_output : bool, default=True
        Whether the output layer is trained too. If not, its weights are fixed at ±1 and the last
        hidden layer gives :math:`T' = \frac{1}{2} \kappa_0(\rho)\, T` only. With depth 1 on rows of
        norm one, this is the kernel :math:`\frac{1}{2} t\, \kappa_0(t)` of [SWYZ21].
    weight_variance : float, default=2.0
        The variance w of the weights times the width of their layer, positive and finite. With 2 a
        layer keeps the norms of its input.
    bias_variance : float, default=0.0
        The variance b of the biases, finite and not negative.

    Notes
    -----
    The library neural-tangents starts from :math:`S_0 = \sigma_w^2 \langle x, y \rangle / d +
    \sigma_b^2`, where d is the number of columns: its kernel is this one with
    :math:`w = \sigma_w^2` and :math:`b = \sigma_b^2` on rows multiplied by :math:`\sqrt{2 / d}`.

    :math:`\kappa_0` has square-root singularities where the cosine is 1 or -1. Equal rows have
    exactly the cosine 1; but rows whose directions differ by rounding errors only differ by 1e-8
    in the kernel.

    Examples
    --------
    >>> from powersketch.kernels import NeuralTangent
    >>> X = [[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]]
    >>> NeuralTangent(depth=2)(X).round(6)
    array([[75.      , 20.341515,  0.      ],
           [20.341515, 12.      ,  0.      ],
           [ 0.      ,  0.      ,  0.      ]])
    >>> NeuralTangent(train_output=False).diagonal(X)
    array([12.5,  2. ,  0. ])
    """

    depth: int = 1
    train_output: bool = True
    weight_variance: float = 2.0
    bias_variance: float = 0.0

    _size_name: ClassVar[str] = "norm, with that of the bias,"

    def __post_init__(self) -> None:
        for name, value in (
            ("depth", checked_integer("depth", self.depth, 1)),
            ("train_output", checked_truth("train_output", self.train_output)),
            ("weight_variance", checked_positive("weight_variance", self.weight_variance)),
            ("bias_variance", checked_non_negative("bias_variance", self.bias_variance)),
        ):
            object.__setattr__(self, name, value)

    def power_series(self, squared_norm: float = 1.0) -> PowerSeries:
        r"""Return the kernel of rows of the same norm as a power series of a cosine.

        Parameters
        ----------
        squared_norm : float, default=1.0
            The squared norm of both rows, positive and finite. Without biases, it is a factor of
            the kernel and nothing else.

        Returns
        -------
        PowerSeries
            That of :meth:`profile`, in powers of the cosine of the rows with the bias appended.

        Examples
        --------
        >>> NeuralTangent(train_output=False).power_series().coefficients(4).round(6)
        array([0.      , 0.25    , 0.159155, 0.      , 0.026526])
        """
        return NeuralTangentSeries(
            self.depth,
            self.train_output,
            self.weight_variance,
            self.bias_variance,
            checked_positive("squared_norm", squared_norm),
        )

    def profile(self, cosines: ArrayLike, squared_norm: float = 1.0) -> Float64:
        r"""Return the kernel of two rows of the same norm as a function of a cosine.

        Parameters
        ----------
        cosines : array-like
            The cosine of the rows :math:`(\sqrt{w/2}\, x, \sqrt{b})`, which without biases is that
            of the rows themselves. What lies outside [-1, 1] counts as the nearer end.
        squared_norm : float, default=1.0
            The squared norm of both rows x, positive and finite.

        Returns
        -------
        ndarray of the same shape
            In float64.

        Examples
        --------
        >>> NeuralTangent().profile([-1.0, 0.0, 1.0]).round(6)
        array([0.     , 0.31831, 2.     ])
        """
        norm = np.sqrt(np.asarray(checked_positive("squared_norm", squared_norm)))
        magnitude = self._layer(norm).magnitudes
        return self._tangents(np.asarray(cosines, dtype=np.float64), magnitude, magnitude)

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        return self._first_layer

    def _first_layer(self, X: Rows, rows: slice) -> Prepared:
        """Return rows (√(w/2) x, √b), scaled to norm one, and their norms √S(x, x)."""
        units, norms = normalised(X, rows)
        layer = self._layer(norms)
        if self.bias_variance > 0.0:
            units = appended(scaled_rows(units, layer.weight_shares), layer.bias_shares)
        return units, layer.magnitudes

    def _from_squared_norms(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64, Float64]:
        cosines, *norms = super()._from_squared_norms(products, left, right)
        left_layer, right_layer = self._layer(norms[0][:, np.newaxis]), self._layer(norms[1])
        if self.bias_variance > 0.0:
            shares = left_layer.weight_shares * right_layer.weight_shares
            cosines = _with_bias(cosines, shares, left_layer, right_layer)
        return cosines, left_layer.magnitudes[:, 0], right_layer.magnitudes

    def _values(self, products: Float64, left: Float64, right: Float64) -> Float64:
        return self._tangents(products, left[:, np.newaxis], right)

    def _diagonal_values(self, sizes: Float64) -> Float64:
        covariance = tangent = sizes**2
        for _ in range(self._trained_layers):
            covariance = 0.5 * self.weight_variance * covariance + self.bias_variance
            tangent = covariance + 0.5 * self.weight_variance * tangent
        return tangent if self.train_output else 0.5 * tangent

    def _tangents(self, cosines: Float64, left: Float64, right: Float64) -> Float64:
        """Return T from ρ and from √S(x, x) and √S(y, y), all of layer 0.

        S and T are kept relative to √(S(x, x) S(y, y)), so that no norm over- or underflows.
        """
        cosines = np.clip(cosines, -1.0, 1.0)
        pairs = _Pairs(cosines, cosines, left, right)
        for _ in range(self._trained_layers):
            pairs, _ = self._following(pairs)
        cosines, tangents, left, right = pairs
        if not self.train_output:
            tangents = 0.5 * kappa_0(cosines) * tangents
        return left * right * tangents

    def _derivatives(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64]:
        """Follow the derivatives of S and T through the layers, for rows of norm one."""
        cosines, gain = np.clip(products, -1.0, 1.0), 0.5 * self.weight_variance
        first = pairs = _Pairs(cosines, cosines, left[:, np.newaxis], right)
        covariance = tangent = _Slopes(np.ones_like(cosines), np.zeros_like(cosines))
        ratios = np.ones_like(cosines)
        for layer in range(1, self._trained_layers + 1):
            following, kappas = self._following(pairs)
            product = _slopes_of_product(pairs, kappas, covariance, tangent, ratios)
            sines = np.sqrt((1.0 - pairs.cosines) * (1.0 + pairs.cosines))
            # Of √(S(x, x) S(y, y)) κ₁(ρ), the derivative by S(x, x) has the factor κ₁ − ρ κ₀.
            by_norms = kappas * covariance.by_norms + sines * ratios / math.pi
            covariance = _Slopes(gain * kappas * covariance.by_products, gain * by_norms)
            tangent = _Slopes(
                covariance.by_products + gain * product.by_products,
                covariance.by_norms + gain * product.by_norms,
            )
            pairs, ratios = following, gain**layer * self._growth(first, following)
        if not self.train_output:
            kappas = 0.5 * kappa_0(pairs.cosines)
            pairs = pairs._replace(tangents=0.5 * pairs.tangents)
            tangent = _slopes_of_product(pairs, kappas, covariance, tangent, ratios)
        # The first layer's rows grow by this gain with x. A zero row has no angle.
        factors = self._weight_gain * right * (left > 0.0)[:, np.newaxis]
        return factors * tangent.by_products, factors * tangent.by_norms

    def _growth(self, first: _Pairs, later: _Pairs) -> Float64:
        """Return √(S(y, y) / S(x, x)) relative to that of layer 0."""
        if self.bias_variance == 0.0:
            return np.ones_like(first.cosines)
        return (later.right / first.right) / (later.left / first.left)

    def _following(self, pairs: _Pairs) -> tuple[_Pairs, Float64]:
        """Return the pairs of rows one layer later, and κ₀ of their cosines before."""
        cosines, tangents, left, right = pairs
        left_layer, right_layer = self._layer(left), self._layer(right)
        shares = left_layer.weight_shares * right_layer.weight_shares
        slopes, images = kappas_0_and_1(cosines)
        cosines = images
        if self.bias_variance > 0.0:
            cosines = _with_bias(images, shares, left_layer, right_layer)
        tangents = cosines + shares * slopes * tangents
        return _Pairs(cosines, tangents, left_layer.magnitudes, right_layer.magnitudes), slopes

    def _layer(self, magnitudes: Float64) -> _Layer:
        from_weights = self._weight_gain * magnitudes
        following = np.hypot(from_weights, self._bias_gain)
        nonzero = np.where(following > 0.0, following, 1.0)
        return _Layer(from_weights / nonzero, self._bias_gain / nonzero, following)

    @property
    def _weight_gain(self) -> float:
        return math.sqrt(0.5 * self.weight_variance)

    @property
    def _bias_gain(self) -> float:
        return math.sqrt(self.bias_variance)

    @property
    def _trained_layers(self) -> int:
        return self.depth if self.train_output else self.depth - 1


@dataclass(frozen=True)
class NeuralTangentSeries(LayeredSeries):
    """The neural tangent kernel of rows of one norm, in the cosine ρ₀ of (√(w/2) x, √b).

    It converges for cosines from −1 to 1.
    """

    depth: int
    train_output: bool
    weight_variance: float
    bias_variance: float
    squared_norm: float

    def _expansion(self, size: int) -> PositiveSeries:
        gain, diagonals = Decimal(self.weight_variance) / 2, self._diagonals()
        cosine, at_zero = PositiveSeries.identity(size), Decimal(0)
        tangent = cosine.scaled(float(diagonals[0]))
        for below, diagonal in pairwise(diagonals):
            slope, image = kappas_of(cosine, at_zero, 1)
            share = gain * below / diagonal
            at_zero = 1 - share * (1 - kappas_at(at_zero)[1])
            cosine = image.scaled(float(share)).with_first(float(at_zero))
            tangent = cosine.scaled(float(diagonal)) + (slope * tangent).scaled(float(gain))
        if self.train_output:
            return tangent
        return (kappas_of(cosine, at_zero, 0)[0] * tangent).scaled(0.5)

    def _closed_form(self, t: Float64, factor: float) -> Float64:
        gain = 0.5 * self.weight_variance
        with decimal.localcontext(wide_decimals()):
            diagonals = self._diagonals()
            layers = [(float(Decimal(gain) * a / b), float(b)) for a, b in pairwise(diagonals)]
        tangent = float(diagonals[0]) * t
        for share, diagonal in layers:
            slope, image = kappas_0_and_1(t * factor)
            # In this form, the next cosine is exactly one where this one is.
            t = (1.0 - share * (1.0 - image)) * factor
            tangent = (diagonal * t + gain * slope * tangent) * factor
        if self.train_output:
            return tangent
        return 0.5 * kappa_0(t * factor) * tangent * factor

    def _diagonals(self) -> list[Decimal]:
        """Return S(x, x) of the input and of every layer that is trained together with its S."""
        gain, bias = Decimal(self.weight_variance) / 2, Decimal(self.bias_variance)
        diagonals = [gain * Decimal(self.squared_norm) + bias]
        for _ in range(self.depth if self.train_output else self.depth - 1):
            diagonals.append(gain * diagonals[-1] + bias)
        return diagonals


class _Layer(NamedTuple):
    """√S(x, x) of a layer for every row x, and the parts of it that weights and biases have.

    The parts are relative: the sum of their squares is one, or zero for a zero row.
    """

    weight_shares: Float64
    bias_shares: Float64
    magnitudes: Float64


class _Pairs(NamedTuple):
    """A layer for pairs of rows: ρ, T relative to √(S(x, x) S(y, y)), √S(x, x) and √S(y, y)."""

    cosines: Float64
    tangents: Float64
    left: Float64
    right: Float64


class _Slopes(NamedTuple):
    """Derivatives by S₀(x, y), and by S₀(x, x) times 2 √(S₀(x, x) / S₀(y, y)).

    With that factor no norm over- or underflows.
    """

    by_products: Float64
    by_norms: Float64


def _slopes_of_product(
    pairs: _Pairs, kappas: Float64, covariance: _Slopes, tangent: _Slopes, ratios: Float64
) -> _Slopes:
    """Return the derivatives of κ₀(ρ) T from κ₀(ρ) and the derivatives of S and T.

    `ratios` are the derivatives of √(S(x, x) S(y, y)) by S₀(x, x), with the factor of all of them.
    """
    kinks = inverse_sines(pairs.cosines) * pairs.tangents / math.pi
    of_cosines = covariance.by_norms - pairs.cosines * ratios
    return _Slopes(
        kappas * tangent.by_products + kinks * covariance.by_products,
        kappas * tangent.by_norms + kinks * of_cosines,
    )


def _with_bias(images: Float64, shares: Float64, left: _Layer, right: _Layer) -> Float64:
    """Return p p' κ₁ + q q', where p and q are the shares of weights and biases in a layer.

    As 1 − ((p − p')² + (q − q')²) / 2 − p p' (1 − κ₁) this is exactly 1 for equal rows, where the
    next κ₀ would turn a lost digit into eight.
    """
    weights = left.weight_shares - right.weight_shares
    biases = left.bias_shares - right.bias_shares
    return 1.0 - 0.5 * (weights**2 + biases**2) - shares * (1.0 - images)

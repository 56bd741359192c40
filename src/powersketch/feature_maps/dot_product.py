"""DotProductSketch: features for every kernel that is a power series of the inner product."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from powersketch.arrays import Real, Rows
from powersketch.docstrings import documented
from powersketch.exceptions import InputError, warn_user
from powersketch.feature_maps.base import POWER_NAMES, FeatureMap
from powersketch.feature_maps.expansions.finite_series import (
    TAILS,
    FiniteSeries,
    finite_series_of,
)
from powersketch.feature_maps.expansions.series import (
    MeanSeriesExpansion,
    PowerSum,
    SeriesExpansion,
)
from powersketch.feature_maps.maps import RowMap
from powersketch.feature_maps.maps.stacked import StackedMap
from powersketch.feature_maps.pilot import Pilot
from powersketch.feature_maps.rows import AugmentedRows, check_norms, rows_near_one
from powersketch.kernels import DotProduct, Kernel, resolved_gamma
from powersketch.kernels.series import CoefficientSeries, PowerSeries
from powersketch.parameters import checked_positive
from powersketch.powers import PowerOptions
from powersketch.random_streams import RandomStreams
from powersketch.routines import squared_norms
from powersketch.storable import storable

_SMALLEST_RADIUS = 2.0**-1000  # shorter rows are zero for every kernel


class SeriesFeatureMap(FeatureMap):
    """A feature map of a kernel that is a power series, perhaps only on rows of norm one."""

    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "method": ("power",),
        "power_method": POWER_NAMES,
        "expansion": ("auto", "mean", "none"),
        "tail": TAILS,
    }

    power_method: str
    expansion: str
    tail: str
    tail_eps: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checked_positive("tail_eps", self.tail_eps, remedy="1e-3 is the default")

    def _unused_options(self) -> dict[str, str]:
        unused = super()._unused_options()
        if self.tail == "fit":
            unused["tail_eps"] = "with tail='fit', which is as accurate as it can be"
        return unused

    def _finite_series(
        self, series: PowerSeries, rows: int, streams: RandomStreams, radius: float = 1.0
    ) -> FiniteSeries:
        """Return the series on [−radius, radius] as a finite one."""
        high_degrees, eps = bool(self.norm_preserving), float(self.tail_eps)
        return finite_series_of(
            series, radius, self.tail, eps, rows, streams, high_degrees=high_degrees
        )

    def _series_map(
        self,
        streams: RandomStreams,
        X: Rows,
        size: int,
        kernel: PowerSum,
        exact: Callable[[Rows], Real],
        options: PowerOptions,
    ) -> StackedMap:
        """Draw the features of a series; "auto" measures both expansions on the exact kernel."""
        pilot = Pilot.of(X, streams)
        if kernel.homogeneity == 0:
            pilot = Pilot(rows_near_one(pilot.rows))
        expansion = SeriesExpansion(kernel, X.shape[1])
        direct = StackedMap.draw(streams.child("none"), expansion, pilot, size, options)
        if self.expansion == "none" or (self.expansion == "auto" and not options.preserve_norms):
            return direct
        around_mean = MeanSeriesExpansion.of_pilot(kernel, pilot.rows, size)
        if around_mean is None or around_mean.constants + 2 > size:
            return direct
        mean = StackedMap.draw(streams.child("mean"), around_mean, pilot, size, options)
        mean = mean.with_safe(direct if options.preserve_norms else None)
        return mean if self.expansion == "mean" else pilot.best_map([direct, mean], size, exact)

    def _attributes(self, row_map: RowMap, finite: FiniteSeries | None) -> dict[str, Any]:
        """Return the fitted attributes; there is no series where there are layers or neurons."""
        attributes = dict.fromkeys(
            ("degrees_", "coefficients_", "tail_mass_", "series_error_bound_"), None
        )
        if finite is not None:
            attributes = _series_attributes(finite)
        return {"method_": self.method, "expansion_": row_map.name, **attributes}


def _series_attributes(finite: FiniteSeries) -> dict[str, Any]:
    """Return what a fitted sketch tells about the series in use."""
    at_radius = CoefficientSeries(finite.dense_terms())
    coefficients = at_radius.terms(finite.degrees[-1], 1.0 / finite.radius)
    return {
        "degrees_": finite.degrees,
        "coefficients_": coefficients[list(finite.degrees)],
        "tail_mass_": finite.missing,
        "series_error_bound_": finite.error_bound,
    }


@storable
@documented
class DotProductSketch(SeriesFeatureMap):
    """Features Z with Z Zᵀ ≈ K for κ(gamma ⟨x, y⟩) = Σ_l C_l (gamma ⟨x, y⟩)^l, all C_l ≥ 0.

    Every degree is a block of features: degree 0 and the strongest coordinates of degree 1 are
    exact, as are all monomials of a degree where they fit; other degrees are sketched by one
    chain of pair products that they share (Section 6.2 of [1]_), with sizes in proportion to their
    weights in the data.

    Parameters
    ----------
    series : array of coefficients, str or callable, default="exp"
        C_0, C_1, …; or the name of a series ("exp", "cosh", "sinh", "inverse", "inverse_sqrt",
        "log", "arcsin"); or a function t ↦ κ(t) that takes complex NumPy arrays and is analytic in
        the disk that the data needs.
    gamma : float, "scale", "median" or None, default=None
        Positive factor of the inner product, as in :class:`PolynomialSketch`. None is 1, but for
        rows so long that the values of a named series or of coefficients exceed their dtype: there
        it is the inverse of the largest squared norm, and a warning says so.
    %(n_components)s
    method : {"power"}, default="power"
        The kernel is approximated by the sum of sketched powers; there is no other way.
    %(power_method)s
    %(base_sketch)s
    %(expansion)s
    tail : {"truncate", "sample", "fit"}, default="truncate"
        How the series is made finite. "truncate" leaves out the degrees beyond the one at which the
        tail is at most `tail_eps` of the kernel's largest value, 512 at most. "sample" is the
        scheme of [1]_ for coefficients that decay slowly, like l^−p with 1 < p < 3: the first
        degrees in full, and a sample of the rest drawn in proportion to the coefficients. "fit"
        takes a handful of degrees up to 256, with coefficients fitted to the kernel for the
        norms of the data; it is the most accurate where coefficients decay slowly.
    %(tail_eps)s
    %(map_options)s

    Attributes
    ----------
    kernel_ : powersketch.kernels.DotProduct
        The exact kernel that the features approximate.
    gamma_ : float
        The factor in use.
    degrees_ : tuple of int
        The degrees of the finite series in use.
    coefficients_ : ndarray
        Its coefficients.
    tail_mass_ : float
        What the finite series lacks on the diagonal for a row of the largest norm seen by `fit`;
        a solver can add it.
    series_error_bound_ : float
        For rows within the largest norm seen by `fit`, no entry of the kernel of the finite series
        is further than this from the exact one; n times it bounds the error's operator norm.
    method_ : {"power"}
        How the kernel is approximated.
    expansion_ : {"mean", "none"}
        What was chosen.
    %(map_attributes)s

    Notes
    -----
    A negative coefficient is refused: the kernel would not be positive definite. Rows outside the
    disk of convergence are refused by `fit` and by `transform`.

    References
    ----------
    .. [1] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import DotProductSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> sketch = DotProductSketch(lambda t: 1 / (2 - t), n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = 1 / (2 - X @ X.T)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.02 * np.linalg.norm(K))
    True
    """

    kernel_class: ClassVar[type[Kernel]] = DotProduct
    _stream_name: ClassVar[str] = "dot_product"

    def __init__(
        self,
        series: ArrayLike | str | Callable[[Any], Any] = "exp",
        *,
        gamma: float | str | None = None,
        n_components: int | str = 100,
        method: str = "power",
        power_method: str = "squaring",
        base_sketch: str = "auto",
        expansion: str = "auto",
        tail: str = "truncate",
        tail_eps: float = 1e-3,
        norm_preserving: bool = True,
        internal_components: int | None = None,
        compress_from: int | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.series = series
        self.gamma = gamma
        self.n_components = n_components
        self.method = method
        self.power_method = power_method
        self.base_sketch = base_sketch
        self.expansion = expansion
        self.tail = tail
        self.tail_eps = tail_eps
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.compress_from = compress_from
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _exact_kernel(self) -> DotProduct:
        return DotProduct(self.series, 1.0 if self.gamma is None else self.gamma)

    def _resolved(self, kernel: DotProduct, X: Rows) -> DotProduct:
        return DotProduct(self.series, self._factor(X, kernel))

    def _draw(
        self, kernel: DotProduct, X: Rows, seed: int, size: int
    ) -> tuple[RowMap, dict[str, Any]]:
        streams = RandomStreams(seed, self._stream_name)
        radius = self._squared_radius(X, kernel)
        series = kernel.power_series(radius)
        finite = self._finite_series(series, X.shape[0], streams, radius)
        power_sum = PowerSum(
            AugmentedRows(1.0 / finite.radius, 0.0),
            finite,
            # The disk of a callable is not known: rows a little longer than those of fit may come.
            largest_squared_norm=math.inf if callable(self.series) else series.radius,
            exact=kernel,
        )
        options = self._sketch_options(X, size)
        row_map = self._series_map(streams, X, size, power_sum, kernel, options)
        return row_map, {"gamma_": kernel.gamma, **self._attributes(row_map, finite)}

    def _factor(self, X: Rows, kernel: DotProduct) -> float:
        """Return gamma; where it is left open, one with which the rows have values."""
        if self.gamma is not None:
            return resolved_gamma(kernel.gamma, X)
        radius = float(squared_norms(X).max(initial=0.0))
        if callable(self.series) or not math.isfinite(radius):
            return 1.0
        series = DotProduct(self.series).power_series()
        if math.isfinite(series.radius) or _is_below(series, radius, X.dtype):
            return 1.0
        warn_user(
            f"the largest squared norm of the rows is {radius:.3g}, where the kernel exceeds "
            f"{X.dtype}: gamma was set to {1.0 / radius:.3g}, its inverse. Give gamma, or scale "
            "the rows of X."
        )
        return 1.0 / radius

    def _squared_radius(self, X: Rows, exact: DotProduct) -> float:
        """Return the largest squared norm of the rows, at most that of the disk if it is on it."""
        radius = float(squared_norms(X).max(initial=0.0))
        check_norms(X, np.array([radius]))
        if radius < _SMALLEST_RADIUS:
            return 1.0
        if callable(self.series):
            return radius
        series = exact.power_series()
        tolerance = 64 * float(np.finfo(X.dtype).eps)
        on_the_edge = series.closed and series.contains(np.array(radius), tolerance)
        return min(radius, series.radius) if on_the_edge else radius


def _is_below(series: PowerSeries, t: float, dtype: np.dtype[Any]) -> bool:
    """Tell whether the value of a series everywhere convergent is below the largest of a dtype."""
    try:
        return bool(series.value(t) <= np.finfo(dtype).max)
    except InputError:
        return False

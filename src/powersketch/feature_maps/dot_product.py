"""DotProductSketch: features for every kernel that is a power series of the inner product."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powersketch.arrays import Rows
from powersketch.exceptions import InputError, warn_user
from powersketch.feature_maps.augmented_rows import AugmentedRows
from powersketch.feature_maps.base import FeatureMap
from powersketch.feature_maps.batches import largest_squared_norm
from powersketch.feature_maps.finite_series import FiniteSeries
from powersketch.feature_maps.row_checks import check_norms
from powersketch.feature_maps.row_maps import RowMap
from powersketch.feature_maps.series_choice import EXPANSIONS, series_map
from powersketch.feature_maps.series_expansion import SeriesKernel
from powersketch.feature_maps.series_tails import check_tail, finite_series_of, unused_tail_options
from powersketch.kernels import DotProduct, resolved_gamma
from powersketch.kernels.series import CoefficientSeries, PowerSeries
from powersketch.parameters import one_of
from powersketch.powers import POWER_METHODS
from powersketch.random_streams import RandomStreams

_SMALLEST_RADIUS = 2.0**-1000  # shorter rows are zero for every kernel


class DotProductSketch(FeatureMap):
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
    gamma : float, "scale" or None, default=None
        Positive factor of the inner product; "scale" is 1 / (n_features · variance of X). None is
        1, but for rows so long that the values of a named series or of coefficients exceed their
        dtype: there it is the inverse of the largest squared norm, and a warning says so.
    n_components : int or "auto", default=100
        Number of features; "auto" takes about as few as it needs for the error `eps`.
    method : {"power", "tree", "tensorsketch", "ctr"}, default="power"
        How powers are sketched, as in :class:`PolynomialSketch`.
    base_sketch : {"auto", "srht", "countsketch", "osnap", "gaussian", "rademacher"}, default="auto"
        T, where rows are longer than the internal length. "auto" is "srht" if `fit` sees dense rows
        and "osnap" if it sees sparse ones.
    expansion : {"auto", "mean", "none"}, default="auto"
        "mean" expands the kernel around the mean of the rows given to `fit`, "none" does not, and
        "auto" measures both on a sample of the rows and keeps the better (and is "none" if
        `norm_preserving` is False).
    tail : {"truncate", "sample", "fit"}, default="truncate"
        How the series is made finite. "truncate" leaves out the degrees beyond the one at which the
        tail is at most `tail_eps` of the kernel's largest value, 512 at most. "sample" is the
        scheme of [1]_ for coefficients that decay slowly, like l^−p with 1 < p < 3: the first
        degrees in full, and a sample of the rest drawn in proportion to the coefficients. "fit"
        takes a handful of degrees up to 256, with coefficients fitted to the kernel for the
        norms of the data; it is the most accurate where coefficients decay slowly.
    tail_eps : float, default=1e-3
        The accuracy ε asked of the series by "truncate" and "sample".
    norm_preserving : bool, default=True
        Whether every power is rescaled to its exact norm. False gives the paper's linear sketch.
    internal_components : int or None, default=None
        Length of intermediate powers, rounded up to a power of two; None takes the first power of
        two not below `n_components`.
    eps : float or None, default=None
        With n_components="auto", and only then: the relative error ‖Z Zᵀ − K‖ / ‖K‖ to keep, in
        Frobenius norms both over pairs of different rows and over all entries, between 0 and 1.
    random_state : int, RandomState instance or None, default=None
        An int gives the same bits on every machine, for every number of threads and every split of
        the rows into batches.
    n_jobs : int or None, default=None
        Number of threads, with scikit-learn's meaning: None is 1, -1 all processors.
    verbose : int, default=0
        Whether long transforms report their progress on standard error.

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
    expansion_ : {"mean", "none"}
        What was chosen.
    seed_ : int
        The seed that all random numbers come from.
    n_components_ : int
        Number of features.
    certificate_ : powersketch.accuracy.Certificate
        What was measured at this number of features; only where it was chosen for `eps`.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns seen by `fit`, if they had string names.

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

    def __init__(
        self,
        series: ArrayLike | str | Callable[[Any], Any] = "exp",
        *,
        gamma: float | str | None = None,
        n_components: int | str = 100,
        method: str = "power",
        base_sketch: str = "auto",
        expansion: str = "auto",
        tail: str = "truncate",
        tail_eps: float = 1e-3,
        norm_preserving: bool = True,
        internal_components: int | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.series = series
        self.gamma = gamma
        self.n_components = n_components
        self.method = method
        self.base_sketch = base_sketch
        self.expansion = expansion
        self.tail = tail
        self.tail_eps = tail_eps
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_kernel_parameters(self) -> None:
        DotProduct(self.series, 1.0 if self.gamma is None else self.gamma)
        one_of("method", self.method, tuple(POWER_METHODS))
        one_of("expansion", self.expansion, EXPANSIONS)
        check_tail(self.tail, self.tail_eps)

    def _unused_options(self) -> dict[str, str]:
        return super()._unused_options() | unused_tail_options(self.tail)

    def _prepare(self, X: Rows, seed: int, size: int) -> tuple[DotProduct, RowMap, dict[str, Any]]:
        exact = DotProduct(self.series, self._factor(X))
        streams = RandomStreams(seed, "dot_product")
        radius = self._squared_radius(X, exact)
        series = exact.power_series(radius)
        finite = finite_series_of(
            series,
            radius,
            self.tail,
            float(self.tail_eps),
            X.shape[0],
            streams,
            high_degrees=bool(self.norm_preserving),
        )
        kernel = SeriesKernel(
            AugmentedRows(1.0 / finite.radius, 0.0),
            finite,
            # The disk of a callable is not known: rows a little longer than those of fit may come.
            largest_squared_norm=math.inf if callable(self.series) else series.radius,
            exact=exact.profile,
        )
        options = self._sketch_options(X, size)
        row_map = series_map(streams, X, size, kernel, exact, self.expansion, options)
        return (
            exact,
            row_map,
            {
                "gamma_": exact.gamma,
                "expansion_": row_map.name,
                **series_attributes(finite),
            },
        )

    def _factor(self, X: Rows) -> float:
        """Return gamma; where it is left open, one with which the rows have values."""
        if self.gamma is not None:
            return resolved_gamma(self.gamma, X)
        radius = largest_squared_norm(X)
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
        radius = largest_squared_norm(X)
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


def series_attributes(finite: FiniteSeries) -> dict[str, Any]:
    """Return what a fitted sketch tells about the series in use."""
    at_radius = CoefficientSeries(finite.dense_terms())
    coefficients = at_radius.terms(finite.degrees[-1], 1.0 / finite.radius)
    return {
        "degrees_": finite.degrees,
        "coefficients_": coefficients[list(finite.degrees)],
        "tail_mass_": finite.missing,
        "series_error_bound_": finite.error_bound,
    }

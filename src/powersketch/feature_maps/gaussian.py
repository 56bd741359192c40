"""GaussianSketch: explicit features for the Gaussian kernel."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from powersketch.arrays import Rows, padded_length
from powersketch.feature_maps.base import FeatureMap
from powersketch.feature_maps.fourier import FourierMap
from powersketch.feature_maps.gaussian_expansion import (
    CentredRows,
    GaussianExpansion,
    SinglePowerExpansion,
)
from powersketch.feature_maps.outliers import capped, central_row
from powersketch.feature_maps.row_maps import RowMap
from powersketch.feature_maps.selection import best_map, pilot_rows
from powersketch.feature_maps.stacked import StackedMap
from powersketch.kernels import Gaussian, resolved_gamma
from powersketch.parameters import checked_integer, one_of
from powersketch.powers import POWER_METHODS
from powersketch.random_streams import RandomStreams

_METHODS = ("auto", *POWER_METHODS, "single_power", "fourier")
_TAIL = 1e-6
_HIGHEST_DEGREE = 256  # beyond it, no stack of degrees is worth its time
_SMALLEST_STACK = 3  # degree 0, and two features for all the rest
_SMALLEST_FOURIER = 2
_LARGE_RADIUS = 4.0  # squared: from here on, the single power can be the best
_SINGLE_DEGREES = (64, 1024)


class GaussianSketch(FeatureMap):
    """Features Z with Z Zᵀ ≈ K for the Gaussian kernel exp(−gamma ‖x − y‖²), rows of norm one.

    Around the mean of the data the kernel is a sum of powers of inner products, of which the low
    degrees are exact and the others sketched by one chain that they share (Section 6.1 of [1]_).
    For wide kernels that is far more accurate than random Fourier features; for narrow ones
    structured orthogonal Fourier features [2]_, or a single high power, are as good.

    Parameters
    ----------
    gamma : float or "scale", default=1.0
        Positive factor of the squared distance; "scale" is 1 / (n_features · variance of X).
    n_components : int or "auto", default=100
        Number of features; "auto" takes about as few as it needs for the error `eps`.
    method : {"auto", "power", "tree", "tensorsketch", "ctr", "single_power", "fourier"}, \
            default="auto"
        "power" stacks the terms of the Taylor series; "tree", "tensorsketch" and "ctr" do so too,
        but sketch the powers as in :class:`PolynomialSketch`; "single_power" is
        (1 + 2 gamma ⟨x, y⟩ / P)^P with P up to 1024, on centred rows; "fourier" does not look at
        the data but for its mean; "auto" measures "power", "single_power" and "fourier" on a sample
        of the rows and keeps the best.
    base_sketch : {"auto", "srht", "countsketch", "osnap", "gaussian", "rademacher"}, default="auto"
        T, where rows are longer than the internal length. "auto" is "srht" if `fit` sees dense rows
        and "osnap" if it sees sparse ones.
    norm_preserving : bool, default=True
        Whether every power, and the whole row, is rescaled to its exact norm. False gives the
        paper's linear sketch of every power.
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
    kernel_ : powersketch.kernels.Gaussian
        The exact kernel that the features approximate.
    gamma_ : float
        The factor in use.
    method_ : str
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

    References
    ----------
    .. [1] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.
    .. [2] F. Yu, A. Suresh, K. Choromanski, D. Holtmann-Rice, S. Kumar, "Orthogonal Random
       Features", NIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import GaussianSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> sketch = GaussianSketch(gamma=0.05, n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = sketch.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.02 * np.linalg.norm(K))
    True
    >>> np.allclose(np.linalg.norm(Z, axis=1), 1.0)
    True
    """

    _safe_option: ClassVar[str] = "method='fourier', which is the same everywhere"

    def __init__(
        self,
        gamma: float | str = 1.0,
        *,
        n_components: int | str = 100,
        method: str = "auto",
        base_sketch: str = "auto",
        norm_preserving: bool = True,
        internal_components: int | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.method = method
        self.base_sketch = base_sketch
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_kernel_parameters(self) -> None:
        one_of("method", self.method, _METHODS)
        if self.method == "fourier" and self.n_components != "auto":
            checked_integer(
                "n_components",
                self.n_components,
                _SMALLEST_FOURIER,
                remedy="a cosine and a sine make a pair",
            )
        Gaussian(self.gamma)

    def _unused_options(self) -> dict[str, str]:
        if self.method != "fourier":
            return super()._unused_options()
        why = "with method='fourier', which sketches no powers"
        return dict.fromkeys(("base_sketch", "norm_preserving", "internal_components"), why)

    def _smallest_size(self) -> int:
        return _SMALLEST_FOURIER if self.method == "fourier" else 1

    def _prepare(self, X: Rows, seed: int, size: int) -> tuple[Gaussian, RowMap, dict[str, Any]]:
        kernel = Gaussian(resolved_gamma(self.gamma, X))
        streams = RandomStreams(seed, "gaussian")
        pilot = pilot_rows(X, streams)
        rows = CentredRows(central_row(pilot), math.sqrt(2.0 * kernel.gamma))
        squared_norms = rows.squared_norms(pilot, 1)
        squared_radius = float(np.mean(capped(squared_norms, np.sqrt(squared_norms))))
        maps: list[RowMap] = []
        for method in self._candidates(squared_radius, size):
            if method == "fourier":
                maps.append(FourierMap.draw(streams.child("fourier"), rows, size))
                continue
            expansion: GaussianExpansion | SinglePowerExpansion
            if method in POWER_METHODS:
                expansion = GaussianExpansion(rows, _highest_degree(squared_norms))
            else:
                expansion = SinglePowerExpansion(
                    rows, _single_degree(squared_radius), float(np.quantile(squared_norms, 0.9))
                )
            options = self._sketch_options(X, size)
            maps.append(StackedMap.draw(streams.child(method), expansion, pilot, size, **options))
        row_map = best_map(maps, pilot, size, kernel)
        stacked = self.method in POWER_METHODS
        chosen = self.method if stacked else row_map.name
        if isinstance(row_map, StackedMap) and self.norm_preserving and size >= _SMALLEST_FOURIER:
            fourier = FourierMap.draw(streams.child("fourier"), rows, size)
            row_map = dataclasses.replace(row_map, safe=fourier)
        return kernel, row_map, {"gamma_": kernel.gamma, "method_": chosen}

    def _candidates(self, squared_radius: float, size: int) -> list[str]:
        """Return what to measure, the cheapest first."""
        if self.method != "auto":
            return [self.method]
        if not self.norm_preserving:
            return ["power"]
        if size < _SMALLEST_STACK:
            return ["single_power"]
        few = squared_radius < _HIGHEST_DEGREE / 2
        large = squared_radius > _LARGE_RADIUS
        return ["fourier", *["power"] * few, *["single_power"] * large]


def _highest_degree(squared_norms: np.ndarray[Any, np.dtype[np.float64]]) -> int:
    """Return the degree at which the weights of Poisson's law have all but ended, for all rows."""
    largest = float(np.max(squared_norms))
    degree, weight = 1, 1.0
    # Weights l > ‖u‖² relative to the largest one fall by ‖u‖² / l from each to the next.
    while degree < _HIGHEST_DEGREE and weight > _TAIL:
        degree += 1
        weight *= min(largest / degree, 1.0)
    return max(degree, 2)


def _single_degree(squared_radius: float) -> int:
    low, high = _SINGLE_DEGREES
    return min(max(padded_length(math.ceil(16 * squared_radius)), low), high)

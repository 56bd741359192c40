"""GaussianSketch: explicit features for the Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from powersketch.arrays import Real, Rows, Vector
from powersketch.docstrings import documented
from powersketch.feature_maps.base import POWER_NAMES, FeatureMap
from powersketch.feature_maps.expansions import Expansion
from powersketch.feature_maps.expansions.centred import (
    CentredRows,
    GaussianExpansion,
    SinglePowerExpansion,
)
from powersketch.feature_maps.maps import RowMap, dense_parts, random_direction
from powersketch.feature_maps.maps.stacked import StackedMap
from powersketch.feature_maps.pilot import Pilot, capped, central_row
from powersketch.kernels import Gaussian, Kernel
from powersketch.parameters import USUAL_SIZE
from powersketch.random_streams import RandomStreams
from powersketch.sketches import StructuredNormal, padded_length
from powersketch.storable import storable

_TAIL = 1e-6
_HIGHEST_DEGREE = 256  # beyond it, no stack of degrees is worth its time
_SMALLEST_STACK = 3  # degree 0, and two features for all the rest
_SMALLEST_FOURIER = 2
_LARGE_RADIUS = 4.0  # squared: from here on, the single power can be the best
_SINGLE_DEGREES = (64, 1024)
_LARGEST_FACTOR = 1e30
_LONGEST = {np.dtype(np.float32): 2.0**22, np.dtype(np.float64): 2.0**51}


@storable
@dataclass(frozen=True, eq=False, repr=False)
class FourierMap:
    """z(x) = (cos⟨w, x − c⟩, sin⟨w, x − c⟩) over the root of the number of frequencies w.

    A last column without a partner is zero.
    """

    rows: CentredRows
    frequencies: StructuredNormal

    name: ClassVar[str] = "fourier"

    @classmethod
    def draw(cls, streams: RandomStreams, rows: CentredRows, size: int) -> FourierMap:
        """Sample normal frequencies of variance 2 gamma, counted in turns."""
        factor = rows.factor / (2.0 * math.pi)
        columns = len(rows.centre)
        return cls(rows, StructuredNormal.draw(streams, columns, size // 2, factor))

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        lengths = np.sqrt(self.rows.squared_norms(X, threads))
        frequencies = self.frequencies
        # Frequencies for tiny rows may exceed float32.
        kind = X.dtype if self.rows.factor < _LARGEST_FACTOR else np.dtype(np.float64)
        centre = self.rows.centre.astype(kind)
        scale, used = 1.0 / math.sqrt(frequencies.size), 2 * frequencies.size
        for part, dense in dense_parts(X):
            # The kernel does not change with the origin, and short rows have small phases.
            centred = dense.astype(kind, copy=False) - centre
            out[part, :used] = frequencies.fourier(centred, scale, threads=threads)
        # Phases of rows so far away have no correct digit, and all cosines may be one. Unless they
        # are equal, the kernel of such rows with any others is zero.
        for row in np.flatnonzero(lengths > _LONGEST[X.dtype]).tolist():
            out[row, :used] = random_direction(X, row, 0, used)
        out[:, used:] = 0


@storable
@documented
class GaussianSketch(FeatureMap):
    """Features Z with Z Zᵀ ≈ K for the Gaussian kernel exp(−gamma ‖x − y‖²), rows of norm one.

    Around the mean of the data the kernel is a sum of powers of inner products, of which the low
    degrees are exact and the others sketched by one chain that they share (Section 6.1 of [1]_).
    For wide kernels that is far more accurate than random Fourier features; for narrow ones
    structured orthogonal Fourier features [2]_, or a single high power, are as good.

    Parameters
    ----------
    %(gamma)s
    %(n_components)s
    method : {"auto", "power", "single_power", "fourier"}, default="auto"
        "power" stacks the terms of the Taylor series; "single_power" is
        (1 + 2 gamma ⟨x, y⟩ / P)^P with P up to 1024, on centred rows; "fourier" does not look at
        the data but for its mean; "auto" measures all three on a sample of the rows and keeps the
        best.
    %(power_method)s
    %(base_sketch)s
    %(map_options)s

    Attributes
    ----------
    kernel_ : powersketch.kernels.Gaussian
        The exact kernel that the features approximate.
    gamma_ : float
        The factor in use.
    method_ : {"power", "single_power", "fourier"}
        What was chosen.
    %(map_attributes)s

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

    kernel_class: ClassVar[type[Kernel]] = Gaussian
    _stream_name: ClassVar[str] = "gaussian"
    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "method": ("auto", "power", "single_power", "fourier"),
        "power_method": POWER_NAMES,
    }
    _safe_option: ClassVar[str] = "method='fourier', which is the same everywhere"

    def __init__(
        self,
        gamma: float | str = 1.0,
        *,
        n_components: int | str = 100,
        method: str = "auto",
        power_method: str = "squaring",
        base_sketch: str = "auto",
        norm_preserving: bool = True,
        internal_components: int | None = None,
        compress_from: int | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.method = method
        self.power_method = power_method
        self.base_sketch = base_sketch
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.compress_from = compress_from
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _unused_options(self) -> dict[str, str]:
        if self.method != "fourier":
            return super()._unused_options()
        why = "with method='fourier', which sketches no powers"
        options = ("power_method", "base_sketch", "norm_preserving", "internal_components")
        return dict.fromkeys(options, why)

    def _smallest_size(self) -> tuple[int, str]:
        if self.method == "fourier":
            return _SMALLEST_FOURIER, "a cosine and a sine make a pair"
        return 1, USUAL_SIZE

    def _draw(
        self, kernel: Gaussian, X: Rows, seed: int, size: int
    ) -> tuple[RowMap, dict[str, Any]]:
        streams = RandomStreams(seed, self._stream_name)
        pilot = Pilot.of(X, streams)
        rows = CentredRows(central_row(pilot.rows), math.sqrt(2.0 * kernel.gamma))
        squared_norms = rows.squared_norms(pilot.rows, 1)
        squared_radius = float(np.mean(capped(squared_norms, np.sqrt(squared_norms))))
        options, maps = self._sketch_options(X, size), list[RowMap]()
        for method in self._candidates(squared_radius, size):
            if method == "fourier":
                maps.append(FourierMap.draw(streams.child("fourier"), rows, size))
                continue
            expansion = _expansion(method, rows, squared_norms, squared_radius)
            name = options.method if method == "power" else method
            maps.append(StackedMap.draw(streams.child(name), expansion, pilot, size, options))
        row_map = pilot.best_map(maps, size, kernel)
        method = row_map.name
        if isinstance(row_map, StackedMap) and self.norm_preserving and size >= _SMALLEST_FOURIER:
            drawn = isinstance(maps[0], FourierMap)
            safe = maps[0] if drawn else FourierMap.draw(streams.child("fourier"), rows, size)
            row_map = row_map.with_safe(safe)
        return row_map, {"gamma_": kernel.gamma, "method_": method}

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


def _expansion(
    method: str, rows: CentredRows, squared_norms: Vector, squared_radius: float
) -> Expansion:
    """Return the kernel as a sum of powers, or as one power."""
    if method == "power":
        return GaussianExpansion(rows, _highest_degree(squared_norms))
    fitted_radius = float(np.quantile(squared_norms, 0.9))
    return SinglePowerExpansion(rows, _single_degree(squared_radius), fitted_radius)


def _highest_degree(squared_norms: Vector) -> int:
    """Return the degree beyond which the weights of Poisson's law are negligible, for all rows."""
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

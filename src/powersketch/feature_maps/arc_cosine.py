"""ArcCosineSketch: explicit features for the arc-cosine kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from powersketch.arrays import Rows
from powersketch.docstrings import documented
from powersketch.feature_maps.dot_product import SeriesFeatureMap
from powersketch.feature_maps.expansions.finite_series import FiniteSeries
from powersketch.feature_maps.expansions.series import PowerSum
from powersketch.feature_maps.maps import RowMap
from powersketch.feature_maps.maps.composed import (
    ComposedMap,
    RandomActivations,
    ScaleFreeMap,
    SizedMap,
)
from powersketch.feature_maps.rows import AugmentedRows
from powersketch.kernels import ArcCosine, Kernel
from powersketch.powers import PowerOptions
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

PLAIN_ROWS = AugmentedRows(1.0, 0.0)
_UNUSED_BY_NEURONS = (
    "power_method",
    "tail",
    "tail_eps",
    "expansion",
    "norm_preserving",
    "internal_components",
)


class NeuralFeatureMap(SeriesFeatureMap):
    """A feature map of a neural kernel: by a series of the cosine, or by random neurons."""

    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        **SeriesFeatureMap._choices,
        "method": ("power", "random"),
    }

    def _unused_options(self) -> dict[str, str]:
        if self.method != "random":
            return super()._unused_options()
        why = "with method='random', which takes the activations of neurons"
        return dict.fromkeys(_UNUSED_BY_NEURONS, why)

    def _looks_at_rows(self, columns: int) -> bool:
        """Tell whether the map is one of random neurons that nothing is measured for."""
        measured = isinstance(self.n_components, str) or self.compress_from is not None
        return self.method != "random" or measured

    def _arc_cosine_map(
        self,
        streams: RandomStreams,
        X: Rows,
        size: int,
        exact: ArcCosine,
        options: PowerOptions,
    ) -> tuple[RowMap, FiniteSeries]:
        """Return features of the arc-cosine kernel by its series."""
        finite = self._finite_series(exact.power_series(), X.shape[0], streams)
        kernel = PowerSum(PLAIN_ROWS, finite, homogeneity=exact.order**exact.depth)
        return self._series_map(streams, X, size, kernel, exact, options), finite


@storable
@documented
class ArcCosineSketch(NeuralFeatureMap):
    """Features Z with Z Zᵀ ≈ K for the arc-cosine kernel of order 0, 1 or 2 and any depth.

    On rows of norm one the kernel is a power series of their inner product, and its values for
    other rows follow from their norms. A handful of degrees, fitted on [−1, 1] and exact at 1,
    stands for the series: the diagonal of Z Zᵀ is exact.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        Order of the kernel: step functions, rectified linear units, or their squares.
    depth : int, default=1
        Number of layers, at least 1.
    %(n_components)s
    method : {"power", "random"}, default="power"
        "power" sketches the powers of the series; "random" takes the activations of random neurons.
    %(power_method)s
    %(fitted_tail)s
    %(tail_eps)s
    %(base_sketch)s
    %(expansion)s
    %(map_options)s

    Attributes
    ----------
    kernel_ : powersketch.kernels.ArcCosine
        The exact kernel that the features approximate.
    %(series_attributes)s
    method_ : {"power", "random"}
        How the kernel is approximated.
    expansion_ : {"mean", "none", "random"}
        What was chosen.
    %(map_attributes)s

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import ArcCosineSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> sketch = ArcCosineSketch(order=1, depth=2, n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = sketch.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.02 * np.linalg.norm(K))
    True
    >>> np.allclose(np.sum(Z * Z, axis=1), sketch.kernel_.diagonal(X))
    True
    """

    kernel_class: ClassVar[type[Kernel]] = ArcCosine
    _stream_name: ClassVar[str] = "arc_cosine"

    def __init__(
        self,
        order: int = 1,
        depth: int = 1,
        *,
        n_components: int | str = 100,
        method: str = "power",
        power_method: str = "squaring",
        tail: str = "fit",
        tail_eps: float = 1e-3,
        base_sketch: str = "auto",
        expansion: str = "auto",
        norm_preserving: bool = True,
        internal_components: int | None = None,
        compress_from: int | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.depth = depth
        self.n_components = n_components
        self.method = method
        self.power_method = power_method
        self.tail = tail
        self.tail_eps = tail_eps
        self.base_sketch = base_sketch
        self.expansion = expansion
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.compress_from = compress_from
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _unused_options(self) -> dict[str, str]:
        unused = super()._unused_options()
        if self.method == "random":
            unused["base_sketch"] = unused["tail"]
        return unused

    def _draw(
        self, kernel: ArcCosine, X: Rows, seed: int, size: int
    ) -> tuple[RowMap, dict[str, Any]]:
        streams, finite = RandomStreams(seed, self._stream_name), None
        row_map: RowMap
        if self.method == "random":
            row_map = _random_map(streams, X.shape[1], size, kernel)
        else:
            options = self._sketch_options(X, size)
            row_map, finite = self._arc_cosine_map(streams, X, size, kernel, options)
        if kernel.order == 0:
            row_map = ScaleFreeMap(row_map)
        return row_map, self._attributes(row_map, finite)


def _random_map(streams: RandomStreams, columns: int, size: int, exact: ArcCosine) -> RowMap:
    """Return activations of random neurons, layer after layer."""
    maps: list[SizedMap] = []
    for layer in range(exact.depth):
        activations = RandomActivations.draw(
            streams.child(f"layer/{layer}"), PLAIN_ROWS, exact.order, columns, size
        )
        maps.append(SizedMap(activations, size))
        columns = size
    return ComposedMap(tuple(maps))

"""NeuralTangentSketch: explicit features for the neural tangent kernel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from powersketch.arrays import Rows
from powersketch.docstrings import documented
from powersketch.exceptions import InputError
from powersketch.feature_maps.arc_cosine import PLAIN_ROWS, NeuralFeatureMap
from powersketch.feature_maps.expansions.finite_series import FiniteSeries
from powersketch.feature_maps.expansions.series import PowerSum
from powersketch.feature_maps.maps import RowMap
from powersketch.feature_maps.maps.composed import (
    LayeredMap,
    Network,
    RandomActivations,
    RandomTangent,
    SizedMap,
    TangentLayer,
)
from powersketch.feature_maps.pilot import Pilot
from powersketch.feature_maps.rows import AugmentedRows
from powersketch.kernels import ArcCosine, Kernel, NeuralTangent
from powersketch.powers import PowerOptions
from powersketch.random_streams import RandomStreams
from powersketch.sketches import TensorSRHT, padded_length
from powersketch.storable import storable

_SMALLEST_LAYERS = 8


@storable
@documented
class NeuralTangentSketch(NeuralFeatureMap):
    """Features Z with Z Zᵀ ≈ K for the neural tangent kernel of rectified linear units.

    Without biases, the kernel of a network of any depth is a power series of the cosine of two
    rows, times their norms. A handful of degrees, fitted on [−1, 1] and exact at 1, stands for the
    series: the diagonal of Z Zᵀ is exact. Deep networks with biases are sketched layer by layer.

    Parameters
    ----------
    depth : int, default=1
        Number of hidden layers, at least 1.
    train_output : bool, default=True
        Whether the output layer is trained too. With False and depth 1 this is the kernel of the
        paper [1]_, ½ t κ₀(t) on rows of norm one.
    weight_variance : float, default=2.0
        Variance of the weights times the width of their layer; with 2, layers keep norms.
    bias_variance : float, default=0.0
        Variance of the biases.
    %(n_components)s
    method : {"power", "random"}, default="power"
        "power" sketches the powers of the series; "random" takes the gradients of a random network
        of finite width, sketched to the number of features.
    %(power_method)s
    composition : {"auto", "whole", "layers"}, default="auto"
        "whole" sketches one series for the whole kernel; "layers" sketches every layer's kernel
        of the features before it. "auto" is "whole" wherever the kernel has such a series, where it
        was more accurate in all our measurements, and "layers" for deep networks with biases.
    %(fitted_tail)s
    %(tail_eps)s
    %(base_sketch)s
    %(expansion)s
    %(map_options)s

    Attributes
    ----------
    kernel_ : powersketch.kernels.NeuralTangent
        The exact kernel that the features approximate.
    %(series_attributes)s
    method_ : {"power", "random"}
        How the kernel is approximated.
    expansion_ : {"mean", "none", "layers", "random"}
        What was chosen.
    %(map_attributes)s

    References
    ----------
    .. [1] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import NeuralTangentSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> sketch = NeuralTangentSketch(depth=3, n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = sketch.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.03 * np.linalg.norm(K))
    True
    """

    kernel_class: ClassVar[type[Kernel]] = NeuralTangent
    _stream_name: ClassVar[str] = "neural_tangent"
    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        **NeuralFeatureMap._choices,
        "composition": ("auto", "whole", "layers"),
    }

    def __init__(
        self,
        depth: int = 1,
        *,
        train_output: bool = True,
        weight_variance: float = 2.0,
        bias_variance: float = 0.0,
        n_components: int | str = 100,
        method: str = "power",
        power_method: str = "squaring",
        composition: str = "auto",
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
        self.depth = depth
        self.train_output = train_output
        self.weight_variance = weight_variance
        self.bias_variance = bias_variance
        self.n_components = n_components
        self.method = method
        self.power_method = power_method
        self.composition = composition
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        exact = self._exact_kernel()
        deep_with_bias = exact.depth > 1 and exact.bias_variance > 0
        if self.composition == "whole" and deep_with_bias:
            raise InputError(
                f"composition='whole' needs depth=1 or bias_variance=0, got depth={exact.depth} "
                f"and bias_variance={exact.bias_variance:g}: no power series of the cosine is this "
                "kernel for rows of all norms. Use composition='layers'."
            )

    def _unused_options(self) -> dict[str, str]:
        unused = super()._unused_options()
        if self.method == "random":
            unused["composition"] = unused["tail"]
        elif self.depth == 1 and self.composition == "layers":
            unused["composition"] = "with depth=1, which is one layer"
        return unused

    def _smallest_size(self) -> tuple[int, str]:
        if not self._stacks_layers(self._exact_kernel()):
            return super()._smallest_size()
        return _SMALLEST_LAYERS, "a network's layers stand side by side"

    def _by_layers(self, exact: NeuralTangent) -> bool:
        if self.method == "random" or self.composition == "layers":
            return exact.depth > 1
        return self.composition == "auto" and exact.depth > 1 and exact.bias_variance > 0

    def _stacks_layers(self, exact: NeuralTangent) -> bool:
        """Tell whether several blocks and a constant must find room."""
        random_with_bias = self.method == "random" and exact.bias_variance > 0
        return self._by_layers(exact) or random_with_bias

    def _draw(
        self, kernel: NeuralTangent, X: Rows, seed: int, size: int
    ) -> tuple[RowMap, dict[str, Any]]:
        streams, options = RandomStreams(seed, self._stream_name), self._sketch_options(X, size)
        finite: FiniteSeries | None = None
        if self.method == "random" or self._by_layers(kernel):
            row_map = _LayerBuilder(self, kernel, streams, options).build(X, size)
        else:
            row_map, finite = self._whole_map(streams, X, size, kernel, options)
        return row_map, self._attributes(row_map, finite)

    def _whole_map(
        self,
        streams: RandomStreams,
        X: Rows,
        size: int,
        exact: NeuralTangent,
        options: PowerOptions,
    ) -> tuple[RowMap, FiniteSeries]:
        """Return features by one series for the whole kernel: of depth 1, or without biases."""
        half = exact.weight_variance / 2.0
        layers = exact.depth if exact.train_output else exact.depth - 1
        unit = NeuralTangent(exact.depth, exact.train_output)
        finite = self._finite_series(unit.power_series(), X.shape[0], streams)
        finite = finite.scaled(half**layers)
        kernel = PowerSum(
            AugmentedRows(half, exact.bias_variance),
            finite,
            homogeneity=1,
            offset=exact.bias_variance if exact.train_output else 0.0,
        )
        return self._series_map(streams, X, size, kernel, exact, options), finite


class _LayerBuilder:
    """Draws the layers of a network one after the other, with the pilot rows' features."""

    def __init__(
        self,
        sketch: NeuralTangentSketch,
        exact: NeuralTangent,
        streams: RandomStreams,
        options: PowerOptions,
    ) -> None:
        self._sketch, self._exact, self._streams, self._options = sketch, exact, streams, options
        self._random = sketch.method == "random"
        self._half = exact.weight_variance / 2.0
        self._rows = AugmentedRows(self._half, exact.bias_variance)

    def build(self, X: Rows, size: int) -> RowMap:
        """Return the map; depth 1 has no layers to put together."""
        exact = self._exact
        if exact.depth == 1:
            return self._first_tangent(X, size, train_output=exact.train_output)
        network = Network(self._half, exact.bias_variance)
        value = SizedMap(self._first_value(X, size), size)
        tangent = SizedMap(self._first_tangent(X, size, train_output=True), size)
        preserve_norms = self._options.preserve_norms and not self._random
        layered = LayeredMap(network, value, tangent, (), preserve_norms)
        values, tangents = layered.first_layer(Pilot.of(X, self._streams).rows, 1)
        for number in range(2, exact.depth + 1):
            layer = self._layer(number, values, tangents.shape[1], size)
            if number < exact.depth:
                values, tangents = layered.next_layer(layer, values, tangents, 1)
            layered = layered.with_layer(layer)
        return layered

    def _layer(self, number: int, values: Rows, width: int, size: int) -> TangentLayer:
        streams = self._streams.child(f"layer/{number}")
        last = number == self._exact.depth
        value_size, pair_size = self._last_sizes(size) if last else (size, size)
        slope = SizedMap(self._activation(streams.child("slope"), 0, values, size), size)
        value = None
        if value_size:
            activation = self._activation(streams.child("value"), 1, values, value_size)
            value = SizedMap(activation, value_size)
        pair = TensorSRHT.draw(streams.child("pair"), padded_length(max(width, size)), pair_size)
        return TangentLayer(slope, value, pair)

    def _last_sizes(self, size: int) -> tuple[int, int]:
        """Share the features between the last layer's values and the tangents before it."""
        if not self._exact.train_output:
            return 0, size
        constants = int(self._exact.bias_variance > 0)
        value_size = max((size - constants) // (self._exact.depth + 1), 1)
        return value_size, size - value_size - constants

    def _activation(self, streams: RandomStreams, order: int, rows: Rows, size: int) -> RowMap:
        if self._random:
            return RandomActivations.draw(streams, PLAIN_ROWS, order, rows.shape[1], size)
        exact = ArcCosine(order)
        return self._sketch._arc_cosine_map(streams, rows, size, exact, self._options)[0]

    def _first_value(self, X: Rows, size: int) -> RowMap:
        streams, rows, ramp = self._streams.child("value"), self._rows, ArcCosine(1)
        if self._random:
            return RandomActivations.draw(streams, rows, 1, X.shape[1], size)
        finite = self._sketch._finite_series(ramp.power_series(), X.shape[0], streams)
        kernel = PowerSum(rows, finite, homogeneity=1)
        return self._sketch._series_map(
            streams, X, size, kernel, lambda few: ramp(rows.of(few)), self._options
        )

    def _first_tangent(self, X: Rows, size: int, *, train_output: bool) -> RowMap:
        """Return features of the tangent kernel of one hidden layer."""
        exact, streams = self._exact, self._streams.child("tangent")
        if self._random:
            return RandomTangent.draw(
                streams,
                self._rows,
                X.shape[1],
                size,
                base_sketch=self._options.base_sketch,
                weight=self._half if train_output else 0.5,
                train_output=train_output,
            )
        first = NeuralTangent(1, train_output, exact.weight_variance, exact.bias_variance)
        return self._sketch._whole_map(streams, X, size, first, self._options)[0]

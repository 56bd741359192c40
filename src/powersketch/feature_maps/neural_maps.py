"""How the kernels of neural networks become row maps: by a series, by layers, or at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from powersketch.arrays import Real, Rows, padded_length
from powersketch.feature_maps.augmented_rows import AugmentedRows
from powersketch.feature_maps.finite_series import FiniteSeries
from powersketch.feature_maps.layered import LayeredMap, Network, SizedMap, TangentLayer
from powersketch.feature_maps.random_activations import (
    RandomActivations,
    RandomTangent,
    augmented,
)
from powersketch.feature_maps.row_maps import RowMap
from powersketch.feature_maps.selection import pilot_rows
from powersketch.feature_maps.series_choice import series_map
from powersketch.feature_maps.series_expansion import SeriesKernel
from powersketch.feature_maps.series_tails import finite_series_of
from powersketch.kernels import ArcCosine, NeuralTangent
from powersketch.kernels.series import PowerSeries
from powersketch.random_streams import RandomStreams
from powersketch.sketches import TensorSRHT

_PLAIN = AugmentedRows(1.0, 0.0)


@dataclass(frozen=True, eq=False)
class SeriesOptions:
    """How a series is made finite, and how its powers are taken."""

    tail: str
    tail_eps: float
    expansion: str
    sketch: dict[str, Any]

    def finite(self, series: PowerSeries, rows: int, streams: RandomStreams) -> FiniteSeries:
        """Return the series on [−1, 1] as a finite one."""
        return finite_series_of(
            series,
            1.0,
            self.tail,
            self.tail_eps,
            rows,
            streams,
            high_degrees=self.sketch["preserve_norms"],
        )


def arc_cosine_map(
    streams: RandomStreams, X: Rows, size: int, exact: ArcCosine, options: SeriesOptions
) -> tuple[RowMap, FiniteSeries]:
    """Return features of the arc-cosine kernel by its series."""
    finite = options.finite(exact.power_series(), X.shape[0], streams)
    kernel = SeriesKernel(_PLAIN, finite, homogeneity=exact.order**exact.depth)
    row_map = series_map(streams, X, size, kernel, exact, options.expansion, options.sketch)
    return row_map, finite


def whole_tangent_map(
    streams: RandomStreams, X: Rows, size: int, exact: NeuralTangent, options: SeriesOptions
) -> tuple[RowMap, FiniteSeries]:
    """Return features by one series for the whole kernel, which has no bias unless depth is 1."""
    half = exact.weight_variance / 2.0
    layers = exact.depth if exact.train_output else exact.depth - 1
    unit = NeuralTangent(exact.depth, exact.train_output)
    finite = options.finite(unit.power_series(), X.shape[0], streams).scaled(half**layers)
    kernel = SeriesKernel(
        AugmentedRows(half, exact.bias_variance),
        finite,
        homogeneity=1,
        offset=exact.bias_variance if exact.train_output else 0.0,
    )
    row_map = series_map(streams, X, size, kernel, exact, options.expansion, options.sketch)
    return row_map, finite


def random_arc_cosine(streams: RandomStreams, columns: int, size: int, exact: ArcCosine) -> RowMap:
    """Return activations of random neurons, layer after layer."""
    maps: list[SizedMap] = []
    for layer in range(exact.depth):
        activations = RandomActivations.draw(
            streams.child(f"layer/{layer}"), _PLAIN, exact.order, columns, size
        )
        maps.append(SizedMap(activations, size))
        columns = size
    return ComposedMap(tuple(maps))


@dataclass(frozen=True, eq=False)
class ComposedMap:
    """Maps applied one after the other."""

    maps: tuple[SizedMap, ...]

    name: ClassVar[str] = "random"

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        for sized in self.maps:
            X = sized.apply(X, threads)
        out[:] = X


class TangentBuilder:
    """Draws the layers of a deep network one after the other, with the pilot rows' features."""

    def __init__(
        self, streams: RandomStreams, exact: NeuralTangent, options: SeriesOptions, *, random: bool
    ) -> None:
        self._streams, self._exact, self._options = streams, exact, options
        self._random = random
        self._rows = AugmentedRows(exact.weight_variance / 2.0, exact.bias_variance)

    def build(self, X: Rows, size: int) -> RowMap:
        """Return the map; depth 1 at random is a map of its own."""
        exact, streams = self._exact, self._streams
        half = exact.weight_variance / 2.0
        if exact.depth == 1:
            return self._first_tangent(X, size, train_output=exact.train_output)
        pilot = pilot_rows(X, streams)
        network = Network(half, exact.bias_variance)
        value = SizedMap(self._first_value(X, size), size)
        tangent = SizedMap(self._first_tangent(X, size, train_output=True), size)
        preserve_norms = self._options.sketch["preserve_norms"] and not self._random
        grown = LayeredMap(network, value, tangent, (), preserve_norms)
        values = network.next_value(value, pilot, 1)
        tangents = tangent.apply(pilot, 1)
        for number in range(2, exact.depth + 1):
            layer = self._layer(number, values, tangents.shape[1], size)
            if number < exact.depth:
                values, tangents = grown.next_layer(layer, values, tangents, 1)
            grown = LayeredMap(
                network, value, tangent, (*grown.layers, layer), grown.preserve_norms
            )
        return grown

    def _layer(self, number: int, values: Rows, width: int, size: int) -> TangentLayer:
        streams = self._streams.child(f"layer/{number}")
        own, shared = (size, size) if number < self._exact.depth else self._last_sizes(size)
        slope = SizedMap(self._activation(streams.child("slope"), 0, values, size), size)
        value = None
        if own:
            value = SizedMap(self._activation(streams.child("value"), 1, values, own), own)
        pair = TensorSRHT.draw(streams.child("pair"), padded_length(max(width, size)), shared)
        return TangentLayer(slope, value, pair)

    def _last_sizes(self, size: int) -> tuple[int, int]:
        """Share the features between the last layer's own and those of the layers before it."""
        if not self._exact.train_output:
            return 0, size
        constants = int(self._exact.bias_variance > 0)
        own = max((size - constants) // (self._exact.depth + 1), 1)
        return own, size - own - constants

    def _activation(self, streams: RandomStreams, order: int, rows: Rows, size: int) -> RowMap:
        if self._random:
            return RandomActivations.draw(streams, _PLAIN, order, rows.shape[1], size)
        return arc_cosine_map(streams, rows, size, ArcCosine(order), self._options)[0]

    def _first_value(self, X: Rows, size: int) -> RowMap:
        streams = self._streams.child("value")
        if self._random:
            return RandomActivations.draw(streams, self._rows, 1, X.shape[1], size)
        finite = self._options.finite(ArcCosine(1).power_series(), X.shape[0], streams)
        kernel = SeriesKernel(self._rows, finite, homogeneity=1)
        options = self._options
        return series_map(
            streams, X, size, kernel, self._first_values, options.expansion, options.sketch
        )

    def _first_values(self, rows: Rows) -> Real:
        return ArcCosine(1)(augmented(rows, self._rows))

    def _first_tangent(self, X: Rows, size: int, *, train_output: bool) -> RowMap:
        exact, streams = self._exact, self._streams.child("tangent")
        if self._random:
            return RandomTangent.draw(
                streams,
                self._rows,
                X.shape[1],
                size,
                base_sketch=self._options.sketch["base_sketch"],
                weight=exact.weight_variance / 2.0 if train_output else 0.5,
                train_output=train_output,
            )
        first = NeuralTangent(1, train_output, exact.weight_variance, exact.bias_variance)
        return whole_tangent_map(streams, X, size, first, self._options)[0]

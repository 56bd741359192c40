"""NeuralTangentSketch: exact diagonals, homogeneity, layers, and errors against random networks."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch import NeuralTangentSketch
from powersketch.kernels import NeuralTangent
from tests.feature_maps.cases import (
    assert_series_within_bound,
    digits,
    each_float,
    relative_error,
    squared_lengths,
    uncentred,
    unit_rows,
)

Array = NDArray[Any]

# Kernels that are one series of the cosine: no bias, or one hidden layer.
WHOLE: list[dict[str, Any]] = [
    {},
    {"train_output": False},
    {"depth": 3},
    {"depth": 3, "train_output": False},
    {"depth": 2, "weight_variance": 1.3},
    {"bias_variance": 0.3},
    {"train_output": False, "bias_variance": 0.3, "weight_variance": 1.3},
]
BIASED_LAYERS: list[dict[str, Any]] = [
    {"depth": 2, "bias_variance": 0.3},
    {"depth": 3, "bias_variance": 0.3, "weight_variance": 1.3},
    {"depth": 2, "bias_variance": 0.3, "train_output": False},
]
each_whole = pytest.mark.parametrize("parameters", WHOLE, ids=str)
each_biased = pytest.mark.parametrize("parameters", BIASED_LAYERS, ids=str)
each_expansion = pytest.mark.parametrize("expansion", ["mean", "none"])


def sketch_of(**parameters: Any) -> NeuralTangentSketch:
    return NeuralTangentSketch(**{"n_components": 128, "random_state": 0, **parameters})


def error_on(X: Array, **parameters: Any) -> float:
    sketch = sketch_of(**parameters)
    return relative_error(sketch.fit_transform(X), sketch.kernel_(X))


def mean_error(X: Array, seeds: range, **parameters: Any) -> float:
    return float(np.mean([error_on(X, random_state=seed, **parameters) for seed in seeds]))


def several_norms(count: int = 60, columns: int = 20) -> Array:
    return uncentred(count, columns) * np.linspace(0.2, 3, count)[:, None]


class TestIdentities:
    @each_whole
    @each_expansion
    @each_float
    def test_the_diagonal_is_exact(
        self, parameters: dict[str, Any], expansion: str, dtype: Any
    ) -> None:
        """For rows of all norms, whether fit has seen them or not."""
        X = several_norms().astype(dtype)
        sketch = sketch_of(**parameters, expansion=expansion).fit(X[::2])
        tolerance = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(
            squared_lengths(sketch.transform(X)),
            sketch.kernel_.diagonal(X.astype(np.float64)),
            rtol=tolerance,
        )

    @each_biased
    @pytest.mark.parametrize("expansion", ["auto", "mean", "none"])
    def test_the_diagonal_of_layers_is_exact(
        self, parameters: dict[str, Any], expansion: str
    ) -> None:
        """Every layer keeps the norms of both kinds of features."""
        X = several_norms()
        sketch = sketch_of(**parameters, expansion=expansion).fit(X[::2])
        assert sketch.expansion_ == "layers"
        lengths = squared_lengths(sketch.transform(X))
        np.testing.assert_allclose(lengths, sketch.kernel_.diagonal(X), rtol=1e-11)

    @pytest.mark.parametrize("parameters", [{}, {"train_output": False}], ids=str)
    @pytest.mark.parametrize(
        ("depth", "composition"), [(1, "auto"), (1, "whole"), (3, "whole"), (3, "layers")]
    )
    @pytest.mark.parametrize("factor", [1e-5, 0.3, 7.0])
    def test_homogeneous(
        self, parameters: dict[str, Any], depth: int, composition: str, factor: float
    ) -> None:
        """z(c x) = c z(x) for c > 0 where there is no bias."""
        X = several_norms()
        sketch = sketch_of(**parameters, depth=depth, composition=composition).fit(X)
        expected = factor * sketch.transform(X)
        np.testing.assert_allclose(
            sketch.transform(factor * X), expected, rtol=0, atol=1e-9 * np.abs(expected).max()
        )

    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"depth": 3},
            {"depth": 3, "composition": "layers"},
            {"method": "random"},
            {"depth": 2, "method": "random"},
        ],
        ids=str,
    )
    def test_zero_rows_have_zero_features(self, parameters: dict[str, Any]) -> None:
        X = several_norms()
        X[[3, 7]] = 0
        Z = sketch_of(**parameters).fit_transform(X)
        assert not Z[[3, 7]].any()
        assert np.all(squared_lengths(np.delete(Z, [3, 7], axis=0)) > 0)

    @each_biased
    def test_zero_rows_have_the_features_of_the_bias(self, parameters: dict[str, Any]) -> None:
        X = several_norms()
        X[[3, 7]] = 0
        sketch = sketch_of(**parameters)
        Z = sketch.fit_transform(X)
        np.testing.assert_array_equal(Z[3], Z[7])
        np.testing.assert_allclose(squared_lengths(Z)[3], sketch.kernel_.diagonal(X)[3], rtol=1e-11)

    @pytest.mark.parametrize(("depth", "train_output"), [(1, True), (3, True), (3, False)])
    @pytest.mark.parametrize("weight_variance", [0.5, 3.0])
    def test_weights_scale_the_features(
        self, depth: int, train_output: bool, weight_variance: float
    ) -> None:
        """Without bias, every trained layer multiplies the kernel by w/2, and so does the input."""
        X = several_norms()
        parameters = {"depth": depth, "train_output": train_output}
        plain = sketch_of(**parameters).fit_transform(X)
        scaled = sketch_of(**parameters, weight_variance=weight_variance).fit_transform(X)
        factor = math.sqrt(weight_variance / 2) ** (depth + train_output)
        np.testing.assert_allclose(scaled, factor * plain, rtol=0, atol=1e-9 * np.abs(scaled).max())


class TestSeries:
    @pytest.mark.parametrize("parameters", WHOLE[:5], ids=str)
    @pytest.mark.parametrize("tail", ["truncate", "sample"])
    def test_tail_mass_is_what_the_diagonal_lacks(
        self, parameters: dict[str, Any], tail: str
    ) -> None:
        """On rows for which the input of the first layer has norm one."""
        X = unit_rows(uncentred(60, 20))
        X /= math.sqrt(parameters.get("weight_variance", 2.0) / 2)
        sketch = sketch_of(**parameters, tail=tail, tail_eps=0.05)
        lengths = squared_lengths(sketch.fit_transform(X))
        assert sketch.tail_mass_ > 0
        np.testing.assert_allclose(
            sketch.kernel_.diagonal(X) - lengths, sketch.tail_mass_, rtol=0, atol=1e-11
        )

    @pytest.mark.parametrize("parameters", WHOLE[:4], ids=str)
    @pytest.mark.parametrize("tail", ["fit", "truncate", "sample"])
    def test_the_series_is_within_its_bound(self, parameters: dict[str, Any], tail: str) -> None:
        X = unit_rows(np.random.default_rng(0).normal(size=(60, 3)))
        own = {} if tail == "fit" else {"tail_eps": 0.05}
        sketch = sketch_of(**parameters, tail=tail, **own).fit(X)
        assert_series_within_bound(sketch, X, fitted_share=0.02)

    def test_the_fit_is_better_than_taylor(self) -> None:
        """Total error, where rows are nearly parallel and the tail counts: 0.4 times."""
        X = unit_rows(3 + np.random.default_rng(0).normal(size=(200, 10)))
        fit, taylor = (error_on(X, n_components=1024, tail=tail) for tail in ("fit", "truncate"))
        assert fit < 0.6 * taylor

    @pytest.mark.parametrize(
        "parameters",
        [
            {"method": "random"},
            {"depth": 2, "bias_variance": 0.1},
            {"depth": 2, "method": "random"},
        ],
        ids=str,
    )
    def test_no_series_for_layers_and_networks(self, parameters: dict[str, Any]) -> None:
        sketch = sketch_of(**parameters).fit(uncentred(20, 5))
        assert sketch.expansion_ in ("layers", "random")
        for name in ("degrees_", "coefficients_", "tail_mass_", "series_error_bound_"):
            assert getattr(sketch, name) is None


def gradient_features(X: Array, size: int, seed: int) -> Array:
    """Return x ⊗ step(W x) of size / columns neurons: the gradients of a network."""
    neurons = size // X.shape[1]
    W = np.random.default_rng(seed).normal(size=(neurons, X.shape[1]))
    steps = (X @ W.T > 0) / math.sqrt(neurons)
    features: Array = np.einsum("ni,nj->nij", X, steps).reshape(len(X), -1)
    return features


@cache
def paper_error(method: str) -> float:
    """Mean of three seeds on 800 digits of norm one, 2048 features."""
    X = unit_rows(digits(800))
    parameters = {"train_output": False, "n_components": 2048, "method": method}
    return mean_error(X, range(3), **parameters)


class TestAccuracy:
    def test_the_kernel_of_the_paper(self) -> None:
        """½ t κ₀(t): 0.0070."""
        assert paper_error("power") <= 0.010

    def test_better_than_a_sketched_random_network(self) -> None:
        """10 times at equal size."""
        assert paper_error("random") >= 5 * paper_error("power")

    def test_better_than_gradients_of_a_random_network(self) -> None:
        """32 neurons of 64 weights each: 32 times."""
        X = unit_rows(digits(800))
        K = NeuralTangent(train_output=False)(X)
        theirs = [relative_error(gradient_features(X, 2048, seed), K) for seed in range(3)]
        assert np.mean(theirs) >= 10 * paper_error("power")

    def test_deep_network(self) -> None:
        """Depth 3, all layers trained, 4096 features on 800 digits of norm one: 0.0066."""
        X = unit_rows(digits(800))
        assert error_on(X, depth=3, n_components=4096) <= 0.010

    @pytest.mark.parametrize(
        ("parameters", "sizes", "limit"),
        [
            ({"bias_variance": 0.3}, (128, 2048), 0.004),
            ({"depth": 3, "bias_variance": 0.3}, (128, 1024), 0.025),
            ({"depth": 3, "composition": "layers"}, (128, 1024), 0.045),
            ({"depth": 2, "train_output": False, "bias_variance": 0.3}, (128, 1024), 0.03),
        ],
        ids=str,
    )
    def test_error_falls_with_the_size(
        self, parameters: dict[str, Any], sizes: tuple[int, int], limit: float
    ) -> None:
        """Mean of two seeds: .0022, .021, .035 and .021 at the larger size."""
        X = unit_rows(digits(300))
        small, large = (mean_error(X, range(2), **parameters, n_components=m) for m in sizes)
        assert large < 0.6 * small
        assert large < limit

    def test_whole_kernel_and_layers_agree_in_the_limit(self) -> None:
        """Both tend to the kernel, so that they tend to each other; the whole one faster."""
        X = unit_rows(digits(200))
        K = NeuralTangent(2)(X)
        kernels = {}
        for composition in ("whole", "layers"):
            Z = sketch_of(depth=2, composition=composition, n_components=2048).fit_transform(X)
            kernels[composition] = Z @ Z.T
        scale = np.linalg.norm(K)
        assert np.linalg.norm(kernels["whole"] - kernels["layers"]) < 0.03 * scale
        assert np.linalg.norm(kernels["whole"] - K) < np.linalg.norm(kernels["layers"] - K)

    @pytest.mark.parametrize("parameters", [{}, {"depth": 3}], ids=str)
    def test_auto_is_near_the_better_of_both_expansions(self, parameters: dict[str, Any]) -> None:
        X = unit_rows(digits(400))
        for seed in range(2):
            errors = {
                expansion: error_on(
                    X, **parameters, n_components=256, expansion=expansion, random_state=seed
                )
                for expansion in ("auto", "mean", "none")
            }
            assert errors["auto"] <= 1.05 * min(errors.values())

    def test_literal_sketches_converge(self) -> None:
        """By the Taylor series: the fit has degrees that are too high for a literal sketch."""
        X = unit_rows(uncentred(100, 20))
        parameters = {"norm_preserving": False, "tail": "truncate"}
        small, large = (error_on(X, n_components=size, **parameters) for size in (128, 2048))
        assert large < 0.2 * small
        assert large < 0.02


class TestRandomNetworks:
    @pytest.mark.parametrize("train_output", [True, False])
    @pytest.mark.parametrize("bias", [0.0, 0.3])
    def test_unbiased(self, train_output: bool, bias: float) -> None:
        """The mean over 1000 seeds is the kernel, within 4.5 standard errors and 0.5 %.

        Six pairs, four cases: failure probability 2e-4.
        """
        X = unit_rows(np.random.default_rng(1).normal(loc=0.3, size=(3, 20)))
        parameters = {"train_output": train_output, "bias_variance": bias, "weight_variance": 1.6}
        kernels = []
        for seed in range(1000):
            sketch = sketch_of(method="random", n_components=64, random_state=seed, **parameters)
            Z = sketch.fit_transform(X)
            kernels.append(Z @ Z.T)
        K = NeuralTangent(1, train_output, 1.6, bias)(X)
        errors = np.std(kernels, axis=0) / math.sqrt(1000)
        assert np.all(np.abs(np.mean(kernels, axis=0) - K) <= 4.5 * errors + 5e-3 * K.max())

    @pytest.mark.parametrize("parameters", [{"depth": 2}, *BIASED_LAYERS], ids=str)
    def test_deep_ones_converge(self, parameters: dict[str, Any]) -> None:
        X = unit_rows(uncentred(60, 20))
        small, large = (
            mean_error(X, range(4), **parameters, method="random", n_components=size)
            for size in (128, 2048)
        )
        assert large < 0.5 * small
        assert large < 0.15


class TestRefusals:
    @pytest.mark.parametrize("bias", [1e-9, 0.5])
    def test_one_series_for_a_deep_network_with_bias(self, bias: float) -> None:
        with pytest.raises(ValueError, match=r"depth=2 and bias_variance=.*composition='layers'"):
            sketch_of(depth=2, bias_variance=bias, composition="whole").fit(uncentred(10, 3))

    def test_one_series_for_one_layer_with_bias(self) -> None:
        sketch = sketch_of(bias_variance=0.5, composition="whole").fit(uncentred(10, 3))
        assert sketch.degrees_ is not None

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"depth": 0}, ValueError, "depth=0"),
            ({"depth": 1.5}, TypeError, "depth=1.5"),
            ({"train_output": 1}, TypeError, "train_output=1"),
            ({"weight_variance": 0.0}, ValueError, "weight_variance=0.0"),
            ({"weight_variance": math.inf}, ValueError, "weight_variance=inf"),
            ({"bias_variance": -0.1}, ValueError, "bias_variance=-0.1"),
            ({"bias_variance": math.nan}, ValueError, "bias_variance=nan"),
            ({"composition": "deep"}, ValueError, "composition='deep' is unknown.*'layers'"),
            ({"method": "relu"}, ValueError, "method='relu' is unknown.*'power',.*'random'"),
            ({"tail": "cut"}, ValueError, "tail='cut' is unknown"),
            ({"tail_eps": -1.0}, ValueError, "tail_eps=-1.0"),
            ({"depth": 2, "composition": "layers", "n_components": 7}, ValueError, "at least 8"),
        ],
        ids=str,
    )
    def test_bad_parameters(
        self, parameters: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            sketch_of(**parameters).fit(uncentred(10, 3))

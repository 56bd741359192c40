"""One entry for every kind of feature map, so that every property is tested on all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.feature_maps.base import FeatureMap

FLOATS = (np.float32, np.float64)
ESTIMATORS: tuple[type[FeatureMap], ...] = (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)


@dataclass(frozen=True)
class Case:
    """Parameters of a sketch, how many columns its rows have, and which laws it obeys."""

    name: str
    columns: int
    parameters: dict[str, Any]
    same_bits_sparse: bool = True  # not so for the SRHT, which sums few entries in another order
    estimator: type[FeatureMap] = PolynomialSketch
    # Whose diagonal Z Zᵀ has: that of the "kernel", of its finite "series", or of "neither".
    diagonal: str = "kernel"
    homogeneity: int | None = None  # h with z(c x) = c^h z(x) for all c > 0
    random: bool = True  # whether the seed matters
    portable: bool = True  # whether other processes give the same bits
    own_arithmetic: bool = True  # whether other processors do, too: no function of the user's
    largest_norm: float = math.inf  # of the rows that the kernel takes
    reach: float = 3.0  # how much longer than the rows of fit others may be

    def sketch_by(self, base_sketch: str) -> Any:
        """Return a new estimator with another base sketch, if its method has use for one."""
        unused = self.sketch()._unused_options()
        return self.sketch() if "base_sketch" in unused else self.sketch(base_sketch=base_sketch)

    def sketch(self, **changes: Any) -> Any:
        """Return the sketch, not fitted."""
        return self.estimator(**{"random_state": 5, **self.parameters, **changes})

    def rows(
        self, count: int = 37, dtype: Any = np.float64, seed: int = 0, columns: int | None = None
    ) -> NDArray[Any]:
        """Return rows for it."""
        X = uncentred(count, columns or self.columns, np.float64, seed)
        longest = float(np.sqrt(squared_lengths(X).max()))
        if longest > self.largest_norm:
            X *= self.largest_norm / longest
        rows: NDArray[Any] = X.astype(dtype)
        return rows

    def fitted(self, count: int = 37, dtype: Any = np.float64) -> Any:
        """Return the sketch fitted to its rows; tests share it and must not change it."""
        return _fitted(self.name, count, np.dtype(dtype))

    def features(self, count: int = 37, dtype: Any = np.float64) -> NDArray[Any]:
        """Return the features of its rows; tests share them."""
        return _features(self.name, count, np.dtype(dtype))

    def expected_diagonal(self, sketch: Any, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the diagonal of Z Zᵀ, or of what it estimates if that is neither."""
        X = X.astype(np.float64)
        diagonal: NDArray[np.float64]
        if self.diagonal != "series":
            diagonal = sketch.kernel_.diagonal(X)
        elif self.homogeneity is None:
            powers = squared_lengths(X)[:, None] ** np.array(sketch.degrees_)
            diagonal = powers @ sketch.coefficients_
        else:
            kept = sketch.coefficients_.sum()
            diagonal = sketch.kernel_.diagonal(X) * kept / (kept + sketch.tail_mass_)
        return diagonal


@cache
def _fitted(name: str, count: int, dtype: np.dtype[Any]) -> Any:
    case = CASES[name]
    return case.sketch().fit(case.rows(count, dtype))


@cache
def _features(name: str, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    case = CASES[name]
    features: NDArray[Any] = case.fitted(count, dtype).transform(case.rows(count, dtype))
    features.flags.writeable = False
    return features


def uncentred(count: int, columns: int, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
    """Rows of norms about one that are not centred, a quarter of their entries zero."""
    generator = np.random.default_rng(seed)
    X = generator.normal(loc=0.7, size=(count, columns)) / np.sqrt(1.5 * columns)
    X[generator.random(X.shape) < 0.25] = 0.0
    rows: NDArray[Any] = X.astype(dtype)
    return rows


_POLYNOMIAL = [
    Case("exact", 5, {"degree": 3, "coef0": 1.0, "n_components": 60}, random=False),
    Case(
        "direct",
        40,
        {"degree": 5, "n_components": 30, "expansion": "none"},
        same_bits_sparse=False,
        homogeneity=5,
    ),
    Case(
        "direct without T",
        6,
        {"degree": 5, "coef0": 0.5, "n_components": 50, "expansion": "none"},
    ),
    Case(
        "direct by countsketch",
        40,
        {
            "degree": 6,
            "coef0": 0.5,
            "n_components": 32,
            "expansion": "none",
            "base_sketch": "countsketch",
        },
    ),
    Case(
        "direct by osnap",
        40,
        {"degree": 7, "n_components": 20, "expansion": "none", "base_sketch": "osnap"},
        homogeneity=7,
    ),
    Case(
        "direct by gaussian",
        90,
        {
            "degree": 4,
            "coef0": 0.5,
            "n_components": 24,
            "expansion": "none",
            "base_sketch": "gaussian",
            "internal_components": 48,
        },
    ),
    Case(
        "linear",
        40,
        {"degree": 1, "n_components": 24, "expansion": "none"},
        same_bits_sparse=False,
        homogeneity=1,
    ),
    Case("mean", 40, {"degree": 4, "n_components": 80, "expansion": "mean"}, homogeneity=4),
    Case(
        "mean by osnap",
        90,
        {
            "degree": 3,
            "gamma": 0.5,
            "coef0": 0.5,
            "n_components": 30,
            "expansion": "mean",
            "base_sketch": "osnap",
        },
    ),
    Case(
        "mean with monomials",
        3,
        {"degree": 7, "coef0": 0.2, "n_components": 40, "expansion": "mean"},
    ),
    Case(
        "literal",
        40,
        {"degree": 5, "coef0": 0.5, "n_components": 48, "norm_preserving": False},
        diagonal="neither",
    ),
    Case(
        "literal around the mean",
        40,
        {"degree": 4, "n_components": 60, "expansion": "mean", "norm_preserving": False},
        diagonal="neither",
        homogeneity=4,
    ),
    Case(
        "chosen by measuring",
        40,
        {"degree": 2, "n_components": 64, "base_sketch": "osnap"},
        homogeneity=2,
    ),
    Case(
        "tree",
        40,
        {"degree": 5, "n_components": 30, "expansion": "none", "method": "tree"},
        same_bits_sparse=False,
        homogeneity=5,
    ),
    Case(
        "tree around the mean",
        90,
        {
            "degree": 6,
            "coef0": 0.5,
            "n_components": 50,
            "expansion": "mean",
            "method": "tree",
            "base_sketch": "osnap",
        },
    ),
    Case(
        "literal tree of short rows",
        6,
        {"degree": 7, "n_components": 40, "norm_preserving": False, "method": "tree"},
        diagonal="neither",
        homogeneity=7,
    ),
    Case(
        "complex-to-real",
        40,
        {"degree": 5, "n_components": 30, "expansion": "none", "method": "ctr"},
        same_bits_sparse=False,
        homogeneity=5,
    ),
    Case(
        "complex-to-real, odd, by osnap",
        90,
        {
            "degree": 6,
            "coef0": 0.5,
            "n_components": 31,
            "expansion": "none",
            "method": "ctr",
            "base_sketch": "osnap",
        },
        same_bits_sparse=False,
    ),
    Case(
        "complex-to-real by rademacher",
        40,
        {
            "degree": 3,
            "n_components": 24,
            "expansion": "none",
            "method": "ctr",
            "base_sketch": "rademacher",
        },
        homogeneity=3,
    ),
    Case(
        "complex-to-real around the mean",
        40,
        {"degree": 4, "n_components": 80, "expansion": "mean", "method": "ctr"},
        same_bits_sparse=False,
        homogeneity=4,
    ),
    Case(
        "literal complex-to-real",
        90,
        {
            "degree": 3,
            "coef0": 0.5,
            "n_components": 47,
            "norm_preserving": False,
            "method": "ctr",
        },
        same_bits_sparse=False,
        diagonal="neither",
    ),
    Case(
        "tensorsketch",
        40,
        {"degree": 5, "n_components": 30, "expansion": "none", "method": "tensorsketch"},
        homogeneity=5,
    ),
    Case(
        "tensorsketch of a prime length",
        90,
        {
            "degree": 6,
            "coef0": 0.5,
            "n_components": 37,
            "expansion": "none",
            "method": "tensorsketch",
        },
    ),
    Case(
        "tensorsketch around the mean",
        40,
        {"degree": 4, "n_components": 80, "expansion": "mean", "method": "tensorsketch"},
        homogeneity=4,
    ),
    Case(
        "literal tensorsketch",
        90,
        {
            "degree": 3,
            "coef0": 0.5,
            "n_components": 48,
            "norm_preserving": False,
            "method": "tensorsketch",
        },
        diagonal="neither",
    ),
    Case(
        "adaptive",
        40,
        {"degree": 4, "n_components": 30, "method": "adaptive"},
        homogeneity=4,
    ),
    Case(
        "adaptive with a constant",
        90,
        {
            "degree": 3,
            "gamma": 0.5,
            "coef0": 0.5,
            "n_components": 47,
            "method": "adaptive",
        },
    ),
    Case(
        "adaptive of high degree",
        12,
        {"degree": 17, "coef0": 0.5, "n_components": 24, "method": "adaptive"},
        # A row without a monomial other than zero stays zero.
        diagonal="neither",
    ),
    Case(
        "literal adaptive",
        6,
        {"degree": 5, "n_components": 60, "norm_preserving": False, "method": "adaptive"},
        diagonal="neither",
        homogeneity=5,
    ),
    Case(
        "main directions",
        40,
        {"degree": 3, "n_components": 20, "compress_from": 80, "base_sketch": "osnap"},
        homogeneity=3,
        diagonal="neither",
        portable=False,
    ),
    Case(
        "main directions of few monomials",
        5,
        {
            "degree": 3,
            "coef0": 0.5,
            "n_components": 17,
            "compress_from": 68,
        },
        random=False,
        diagonal="neither",
        portable=False,
    ),
]


def _gaussian(name: str, columns: int, parameters: dict[str, Any], **laws: Any) -> Case:
    return Case(f"gaussian {name}", columns, parameters, estimator=GaussianSketch, **laws)


_GAUSSIAN = [
    _gaussian("powers", 40, {"gamma": 0.5, "n_components": 60, "method": "power"}),
    _gaussian(
        "powers by osnap",
        90,
        {"gamma": 0.5, "n_components": 30, "method": "power", "base_sketch": "osnap"},
    ),
    _gaussian("powers with monomials", 3, {"gamma": 0.7, "n_components": 40, "method": "power"}),
    _gaussian(
        "literal powers",
        40,
        {"gamma": 0.5, "n_components": 60, "method": "power", "norm_preserving": False},
        diagonal="neither",
    ),
    _gaussian(
        "powers by tensorsketch",
        40,
        {"gamma": 0.5, "n_components": 60, "method": "power", "power_method": "tensorsketch"},
    ),
    _gaussian("single power", 40, {"gamma": 3.0, "n_components": 48, "method": "single_power"}),
    _gaussian(
        "single power by countsketch",
        90,
        {
            "gamma": 3.0,
            "n_components": 30,
            "method": "single_power",
            "base_sketch": "countsketch",
        },
    ),
    _gaussian("fourier", 40, {"gamma": 2.0, "n_components": 50, "method": "fourier"}),
    _gaussian("odd fourier", 90, {"gamma": 2.0, "n_components": 151, "method": "fourier"}),
    _gaussian(
        "chosen by measuring", 40, {"gamma": 4.0, "n_components": 40, "base_sketch": "osnap"}
    ),
]


def rational(t: Any) -> Any:
    """Return 1 / (2 − t), whose coefficients are 2^−(l + 1)."""
    return 1 / (2 - t)


def _series(name: str, columns: int, parameters: dict[str, Any], **laws: Any) -> Case:
    laws = {"diagonal": "series", **laws}
    return Case(f"series {name}", columns, parameters, estimator=DotProductSketch, **laws)


_GAPS = [0.5, 0.0, 0.0, 1.0, 0.0, 0.25]
_SERIES = [
    _series("exp", 40, {"series": "exp", "n_components": 60, "expansion": "none"}),
    _series("exp chosen by measuring", 40, {"n_components": 60, "base_sketch": "osnap"}),
    _series(
        "exp by osnap",
        90,
        {"n_components": 30, "expansion": "mean", "base_sketch": "osnap"},
    ),
    _series("exp with monomials", 3, {"n_components": 40, "expansion": "mean"}),
    _series(
        "with gaps",
        90,
        {
            "series": _GAPS,
            "n_components": 40,
            "expansion": "none",
            "base_sketch": "gaussian",
        },
        diagonal="kernel",
    ),
    _series(
        "with gaps around the mean",
        40,
        {"series": _GAPS, "n_components": 48, "expansion": "mean"},
        diagonal="kernel",
    ),
    _series(
        "of a callable",
        40,
        {"series": rational, "n_components": 60, "expansion": "mean"},
        own_arithmetic=False,
        largest_norm=1.0,
        reach=1.0,
    ),
    _series(
        "arcsin sampled",
        40,
        {
            "series": "arcsin",
            "n_components": 60,
            "expansion": "none",
            "tail": "sample",
            "tail_eps": 0.1,
        },
        largest_norm=1 - 2e-7,
        reach=1.0,
    ),
    _series(
        "arcsin sampled around the mean",
        40,
        {
            "series": "arcsin",
            "n_components": 60,
            "expansion": "mean",
            "tail": "sample",
            "tail_eps": 0.1,
        },
        largest_norm=1 - 2e-7,
        reach=1.0,
    ),
    _series(
        "arcsin fitted",
        40,
        {"series": "arcsin", "n_components": 50, "expansion": "none", "tail": "fit"},
        largest_norm=1 - 2e-7,
        reach=1.0,
    ),
    _series(
        "arcsin fitted around the mean",
        40,
        {"series": "arcsin", "n_components": 50, "expansion": "mean", "tail": "fit"},
        largest_norm=1 - 2e-7,
        reach=1.0,
    ),
    _series(
        "literal sinh",
        40,
        {"series": "sinh", "n_components": 48, "norm_preserving": False},
        diagonal="neither",
    ),
    _series(
        "literal exp around the mean",
        40,
        {"n_components": 60, "expansion": "mean", "norm_preserving": False},
        diagonal="neither",
    ),
]


def _arc_cosine(name: str, columns: int, parameters: dict[str, Any], **laws: Any) -> Case:
    homogeneity = parameters["order"] ** parameters.get("depth", 1)
    laws = {"estimator": ArcCosineSketch, "homogeneity": homogeneity, **laws}
    return Case(f"arc-cosine {name}", columns, parameters, **laws)


_ARC_COSINE = [
    _arc_cosine("of steps", 40, {"order": 0, "n_components": 60, "expansion": "none"}),
    _arc_cosine("of steps, around the mean", 40, {"order": 0, "n_components": 60}),
    _arc_cosine(
        "of ramps",
        40,
        {"order": 1, "n_components": 30, "expansion": "none"},
        same_bits_sparse=False,
    ),
    _arc_cosine(
        "of ramps, around the mean", 40, {"order": 1, "n_components": 60, "expansion": "mean"}
    ),
    _arc_cosine(
        "of ramps, depth 2",
        90,
        {
            "order": 1,
            "depth": 2,
            "n_components": 40,
            "expansion": "mean",
            "base_sketch": "osnap",
        },
    ),
    _arc_cosine(
        "of ramps, truncated",
        40,
        {"order": 1, "n_components": 48, "tail": "truncate", "expansion": "none"},
        diagonal="series",
    ),
    _arc_cosine("of squares", 3, {"order": 2, "n_components": 40, "expansion": "mean"}),
    _arc_cosine(
        "of squares, depth 2",
        40,
        {"order": 2, "depth": 2, "n_components": 60, "base_sketch": "countsketch"},
    ),
    _arc_cosine(
        "literal",
        40,
        {"order": 1, "n_components": 48, "norm_preserving": False},
        diagonal="neither",
    ),
    *(
        _arc_cosine(
            f"at random, order {order}, depth {depth}",
            columns,
            {"order": order, "depth": depth, "n_components": size, "method": "random"},
            diagonal="neither",
        )
        for order, depth, columns, size in ((0, 1, 40, 75), (1, 1, 90, 48), (2, 2, 40, 48))
    ),
]


def _tangent(name: str, columns: int, parameters: dict[str, Any], **laws: Any) -> Case:
    homogeneity = None if parameters.get("bias_variance") else 1
    laws = {"estimator": NeuralTangentSketch, "homogeneity": homogeneity, **laws}
    return Case(f"tangent {name}", columns, parameters, **laws)


_TANGENT = [
    _tangent("of the paper", 40, {"train_output": False, "n_components": 60, "expansion": "none"}),
    _tangent("around the mean", 40, {"n_components": 60, "expansion": "mean"}),
    _tangent(
        "depth 3",
        90,
        {"depth": 3, "weight_variance": 1.5, "n_components": 40, "base_sketch": "osnap"},
    ),
    _tangent("with bias", 40, {"bias_variance": 0.3, "n_components": 60, "expansion": "none"}),
    _tangent(
        "with bias around the mean",
        40,
        {
            "train_output": False,
            "bias_variance": 0.3,
            "n_components": 60,
            "expansion": "mean",
        },
    ),
    _tangent(
        "literal",
        40,
        # High degrees would make the literal sketch useless.
        {"n_components": 48, "norm_preserving": False, "tail": "truncate", "tail_eps": 0.05},
        diagonal="neither",
    ),
    _tangent(
        "by layers with bias",
        40,
        {"depth": 2, "bias_variance": 0.3, "n_components": 60, "expansion": "none"},
    ),
    _tangent(
        "by layers around the mean",
        40,
        {
            "depth": 2,
            "train_output": False,
            "n_components": 48,
            "composition": "layers",
            "expansion": "mean",
        },
    ),
    _tangent(
        "at random",
        90,
        {"method": "random", "n_components": 40, "base_sketch": "osnap"},
        diagonal="neither",
    ),
    _tangent(
        "at random with bias",
        40,
        {
            "method": "random",
            "train_output": False,
            "bias_variance": 0.3,
            "n_components": 60,
        },
        diagonal="neither",
    ),
    _tangent(
        "at random, depth 2",
        40,
        {"method": "random", "depth": 2, "bias_variance": 0.3, "n_components": 48},
        diagonal="neither",
    ),
]

CASES = {case.name: case for case in (*_POLYNOMIAL, *_GAUSSIAN, *_SERIES, *_ARC_COSINE, *_TANGENT)}
NORM_PRESERVING = {name: case for name, case in CASES.items() if case.diagonal != "neither"}
HOMOGENEOUS = {name: case for name, case in CASES.items() if case.homogeneity is not None}


each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
each_norm_preserving_case = pytest.mark.parametrize(
    "case", NORM_PRESERVING.values(), ids=NORM_PRESERVING.keys()
)
each_homogeneous_case = pytest.mark.parametrize(
    "case", HOMOGENEOUS.values(), ids=HOMOGENEOUS.keys()
)
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
# One case for every kind of row map, for what concerns rows rather than parameters.
KINDS = {
    name: CASES[name]
    for name in (
        "exact",
        "direct",
        "mean",
        "literal around the mean",
        "adaptive",
        "main directions",
        "gaussian powers with monomials",
        "gaussian single power by countsketch",
        "gaussian fourier",
        "series exp by osnap",
        "arc-cosine of steps, around the mean",
        "arc-cosine at random, order 1, depth 1",
        "tangent by layers with bias",
        "tangent at random with bias",
    )
}
each_kind = pytest.mark.parametrize("case", KINDS.values(), ids=KINDS.keys())


def each_case_with(cases: Mapping[str, Case] = CASES, /, **values: Sequence[Any]) -> Any:
    """Give every case one combination of the values, by turns: all of them occur, but not twice.

    What they stand for is handled by the same code for all cases.
    """
    combinations = list(itertools.product(*values.values()))
    turns = zip(cases.values(), itertools.cycle(combinations))
    arguments = [(case, *combination) for case, combination in turns]
    return pytest.mark.parametrize(("case", *values), arguments, ids=cases.keys())


each_float = pytest.mark.parametrize("dtype", FLOATS)


def unaligned(X: NDArray[Any]) -> NDArray[Any]:
    """Rows that start one byte off."""
    buffer = np.zeros(X.nbytes + 1, dtype=np.uint8)
    shifted = buffer[1:].view(X.dtype).reshape(X.shape)
    shifted[:] = X
    return shifted


def assert_same_bits(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare dtype, shape and every bit."""
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    assert np.ascontiguousarray(actual).tobytes() == np.ascontiguousarray(expected).tobytes()


def relative_error(Z: NDArray[Any], K: NDArray[Any]) -> float:
    """Return ‖Z Zᵀ − K‖_F / ‖K‖_F."""
    Z = Z.astype(np.float64)
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def error_of(sketch: Any, X: NDArray[Any]) -> float:
    """Fit, transform and return the relative error against the exact kernel."""
    return relative_error(sketch.fit_transform(X), sketch.kernel_(X.astype(np.float64)))


def squared_lengths(Z: NDArray[Any]) -> NDArray[np.float64]:
    """Return the diagonal of Z Zᵀ in double precision."""
    return np.einsum("ij,ij->i", Z.astype(np.float64), Z.astype(np.float64))


def unit_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Divide every row by its norm."""
    scaled: NDArray[Any] = X / np.linalg.norm(X, axis=1, keepdims=True)
    return scaled


def digits(count: int) -> NDArray[np.float64]:
    """Return the first images of handwritten digits, one per row."""
    images: NDArray[np.float64] = load_digits().data[:count]
    return images


def digit_labels(count: int) -> NDArray[np.int64]:
    """Return which digits they show."""
    labels: NDArray[np.int64] = load_digits().target[:count]
    return labels


def assert_series_within_bound(sketch: Any, X: NDArray[Any], *, fitted_share: float) -> None:
    """The series in use keeps to its bound on rows of norm one; a fitted one to a small share."""
    cosines = np.clip(X @ X.T, -1, 1)
    terms = zip(sketch.degrees_, sketch.coefficients_, strict=True)
    errors = sketch.kernel_(X) - sum(c * cosines**degree for degree, c in terms)
    assert np.abs(errors).max() <= sketch.series_error_bound_ * (1 + 1e-9) + 1e-12
    if sketch.tail == "fit":
        assert sketch.tail_mass_ == 0
        assert sketch.series_error_bound_ < fitted_share * sketch.kernel_.diagonal(X[:1])[0]

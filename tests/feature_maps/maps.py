"""One entry for every kind of feature map, so that every property is tested on all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from powersketch import PolynomialSketch

FLOATS = (np.float32, np.float64)


@dataclass(frozen=True)
class Case:
    """Parameters of a sketch, and how many columns its rows have."""

    name: str
    columns: int
    parameters: dict[str, Any]
    same_bits_sparse: bool = True  # not so for the SRHT, which sums few entries in another order

    def sketch(self, **changes: Any) -> PolynomialSketch:
        """Return the sketch, not fitted."""
        return PolynomialSketch(**{"random_state": 5, **self.parameters, **changes})

    def rows(self, count: int = 37, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
        """Return rows for it."""
        return uncentred(count, self.columns, dtype, seed)


def uncentred(count: int, columns: int, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
    """Rows of norms about one that are not centred, a quarter of their entries zero."""
    generator = np.random.default_rng(seed)
    X = generator.normal(loc=0.7, size=(count, columns)) / np.sqrt(1.5 * columns)
    X[generator.random(X.shape) < 0.25] = 0.0
    rows: NDArray[Any] = X.astype(dtype)
    return rows


_CASES = [
    Case("exact", 5, {"degree": 3, "coef0": 1.0, "n_components": 60}),
    Case("direct", 40, {"degree": 5, "n_components": 30, "expansion": "none"}, False),
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
    Case("linear", 40, {"degree": 1, "n_components": 24, "expansion": "none"}, False),
    Case("mean", 40, {"degree": 4, "n_components": 80, "expansion": "mean"}),
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
    ),
    Case(
        "literal around the mean",
        40,
        {"degree": 4, "n_components": 60, "expansion": "mean", "norm_preserving": False},
    ),
    Case("chosen by measuring", 40, {"degree": 2, "n_components": 64, "base_sketch": "osnap"}),
]
CASES = {case.name: case for case in _CASES}
NORM_PRESERVING = {
    name: case for name, case in CASES.items() if case.parameters.get("norm_preserving", True)
}

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
each_norm_preserving_case = pytest.mark.parametrize(
    "case", NORM_PRESERVING.values(), ids=NORM_PRESERVING.keys()
)
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


def error_of(sketch: PolynomialSketch, X: NDArray[Any]) -> float:
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

"""Very large and very small numbers: right where the kernel can be represented, else refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import DotProductSketch, PolynomialSketch
from powersketch.exceptions import OutlierWarning
from tests.feature_maps.cases import (
    FLOATS,
    HOMOGENEOUS,
    Case,
    each_case_with,
    each_float,
    relative_error,
    squared_lengths,
    uncentred,
    unit_rows,
)

# What is asked here holds for rows of any size, also where a map is not accurate for them.
pytestmark = pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
MAPS: dict[str, dict[str, Any]] = {
    "direct": {"expansion": "none"},
    "direct by osnap": {"expansion": "none", "base_sketch": "osnap"},
    "mean": {"expansion": "mean"},
    "mean by gaussian": {"expansion": "mean", "base_sketch": "gaussian"},
    "auto": {},
}

each_map = pytest.mark.parametrize("parameters", MAPS.values(), ids=MAPS.keys())
each_container = pytest.mark.parametrize("container", [np.asarray, sp.csr_array])


def rows_of_norm(norm: float, dtype: Any, columns: int = 60) -> NDArray[Any]:
    scaled: NDArray[Any] = (norm * unit_rows(uncentred(25, columns))).astype(dtype)
    return scaled


def double_diagonal(sketch: PolynomialSketch, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return (gamma ‖x‖² + coef0)^degree in double precision."""
    kernel = sketch.kernel_
    diagonal: NDArray[np.float64] = (
        kernel.gamma * squared_lengths(X) + kernel.coef0
    ) ** kernel.degree
    return diagonal


class TestRepresentableKernels:
    @each_map
    @each_container
    @each_float
    @pytest.mark.parametrize("norm", [1e-37, 1e-30, 1e-10, 1.0, 1e10, 1e19, 1e30, 1e37])
    def test_any_norm_and_degree(
        self, parameters: dict[str, Any], container: Any, dtype: Any, norm: float
    ) -> None:
        """Gamma brings every kernel value near one: features are finite, the diagonal exact."""
        X = rows_of_norm(norm, dtype)
        for degree in (1, 2, 3, 64):
            for coef0 in (0, 0.25):
                sketch = PolynomialSketch(
                    degree,
                    gamma=(1 - coef0) / norm**2,
                    coef0=coef0,
                    n_components=32,
                    random_state=0,
                    **parameters,
                )
                Z = sketch.fit_transform(container(X))
                assert np.isfinite(Z).all()
                expected = double_diagonal(sketch, X)
                np.testing.assert_allclose(squared_lengths(Z), expected, rtol=TOLERANCE[dtype])

    @each_map
    @each_float
    @pytest.mark.parametrize("degree", [255, 256, 1000, 1024])
    def test_high_degrees(self, parameters: dict[str, Any], dtype: Any, degree: int) -> None:
        X = rows_of_norm(1e-30, dtype)
        sketch = PolynomialSketch(
            degree, gamma=0.75e60, coef0=0.25, n_components=32, random_state=0, **parameters
        )
        expected = double_diagonal(sketch.fit(X), X)
        np.testing.assert_allclose(
            squared_lengths(sketch.transform(X)), expected, rtol=2 * TOLERANCE[dtype]
        )

    @each_map
    def test_scale_does_not_change_the_features(self, parameters: dict[str, Any]) -> None:
        """Powers of two in X and in gamma that cancel leave every bit."""
        X = rows_of_norm(1.0, np.float32)
        options = {"degree": 5, "n_components": 64, "random_state": 0, **parameters}
        Z = PolynomialSketch(**options).fit_transform(X)
        for exponent in (-90, -3, 50, 100):
            scaled = PolynomialSketch(**options, gamma=2.0 ** (-2 * exponent))
            np.testing.assert_array_equal(scaled.fit_transform(np.ldexp(X, exponent)), Z)

    @each_map
    @each_float
    def test_rows_of_very_different_norms(self, parameters: dict[str, Any], dtype: Any) -> None:
        X = rows_of_norm(1.0, np.float64) * 10.0 ** np.linspace(-15, 9, 25)[:, None]
        X = X.astype(dtype)
        sketch = PolynomialSketch(2, n_components=32, random_state=0, **parameters)
        with pytest.warns(OutlierWarning, match="row 22"):
            lengths = squared_lengths(sketch.fit_transform(X))
        expected = double_diagonal(sketch, X)
        representable = expected > 1e-50
        np.testing.assert_allclose(
            lengths[representable], expected[representable], rtol=TOLERANCE[dtype]
        )

    @each_map
    @each_float
    def test_columns_of_very_different_sizes(self, parameters: dict[str, Any], dtype: Any) -> None:
        X = (rows_of_norm(1.0, np.float64) * 10.0 ** np.linspace(-30, 3, 60)).astype(dtype)
        sketch = PolynomialSketch(3, n_components=32, random_state=0, **parameters)
        lengths = squared_lengths(sketch.fit_transform(X))
        np.testing.assert_allclose(lengths, double_diagonal(sketch, X), rtol=TOLERANCE[dtype])

    @each_float
    def test_exact_features_of_huge_rows(self, dtype: Any) -> None:
        X = rows_of_norm(1e30, dtype, columns=4)
        sketch = PolynomialSketch(3, gamma=0.5e-60, coef0=0.5)
        Z = sketch.fit_transform(X)
        K = (0.5e-60 * (X.astype(np.float64) @ X.T.astype(np.float64)) + 0.5) ** 3
        assert sketch.expansion_ == "exact"
        assert relative_error(Z, K) < TOLERANCE[dtype]

    @each_float
    @pytest.mark.parametrize("norm", [1e-30, 1e30])
    def test_gamma_scale(self, dtype: Any, norm: float) -> None:
        X = rows_of_norm(norm, dtype)
        sketch = PolynomialSketch(4, gamma="scale", random_state=0).fit(X)
        np.testing.assert_allclose(sketch.gamma_, 1 / (60 * X.astype(np.float64).var()), rtol=1e-6)
        np.testing.assert_allclose(
            squared_lengths(sketch.transform(X)), double_diagonal(sketch, X), rtol=TOLERANCE[dtype]
        )


class TestUnderflow:
    @each_map
    @each_float
    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    def test_becomes_zero_quietly(
        self, parameters: dict[str, Any], dtype: Any, container: Any
    ) -> None:
        """Kernel values of 1e-800, far below every float."""
        X = container(rows_of_norm(1e-20, dtype))
        Z = PolynomialSketch(20, n_components=32, random_state=0, **parameters).fit_transform(X)
        assert not Z.any()

    @each_map
    @each_float
    @pytest.mark.parametrize("limit", ["tiny", "smallest_subnormal"])
    def test_smallest_numbers(self, parameters: dict[str, Any], dtype: Any, limit: str) -> None:
        X = np.full((6, 60), getattr(np.finfo(dtype), limit), dtype)
        Z = PolynomialSketch(3, n_components=32, random_state=0, **parameters).fit_transform(X)
        assert not Z.any()

    def test_literal_sketch(self) -> None:
        X = rows_of_norm(1e-20, np.float64)
        sketch = PolynomialSketch(20, n_components=32, norm_preserving=False, random_state=0)
        assert not sketch.fit_transform(X).any()

    def test_only_the_small_rows(self) -> None:
        X = rows_of_norm(1.0, np.float32)
        X[::2] *= np.float32(1e-20)
        lengths = squared_lengths(PolynomialSketch(8, random_state=0).fit_transform(X))
        np.testing.assert_allclose(lengths[1::2], squared_lengths(X[1::2]) ** 8, rtol=1e-5)
        assert not lengths[::2].any()


class TestOverflow:
    @each_map
    @each_float
    @each_container
    def test_names_value_dtype_and_remedy(
        self, parameters: dict[str, Any], dtype: Any, container: Any
    ) -> None:
        X = rows_of_norm(1e10, dtype)
        degree = 2 if dtype == np.float32 else 16
        sketch = PolynomialSketch(degree, n_components=32, random_state=0, **parameters)
        with pytest.raises(ValueError, match=f"overflows {np.dtype(dtype).name}") as caught:
            sketch.fit_transform(container(X))
        message = str(caught.value)
        assert "e+20" in message
        assert "Scale the rows of X" in message
        assert ("pass X as float64" in message) == (dtype == np.float32)

    @each_map
    def test_float64_is_a_remedy(self, parameters: dict[str, Any]) -> None:
        X = rows_of_norm(1e10, np.float32).astype(np.float64)
        sketch = PolynomialSketch(2, n_components=32, random_state=0, **parameters)
        lengths = squared_lengths(sketch.fit_transform(X))
        np.testing.assert_allclose(lengths, double_diagonal(sketch, X), rtol=1e-12)

    @each_map
    def test_at_transform_only(self, parameters: dict[str, Any]) -> None:
        X = rows_of_norm(1.0, np.float32)
        sketch = PolynomialSketch(4, n_components=32, random_state=0, **parameters).fit(X)
        Z = sketch.transform(X)
        with pytest.raises(ValueError, match="overflows float32"):
            sketch.transform(1e10 * X)
        np.testing.assert_array_equal(sketch.transform(X), Z)

    def test_exact_features(self) -> None:
        with pytest.raises(ValueError, match="overflows float32"):
            PolynomialSketch(2).fit_transform(rows_of_norm(1e10, np.float32, columns=4))

    def test_the_last_value_that_fits(self) -> None:
        """The largest kernel value may be anything up to the dtype's maximum."""
        norm = float(np.finfo(np.float32).max) ** (1 / 8)
        for factor, fits in ((0.999, True), (1.001, False)):
            X = rows_of_norm(factor * norm, np.float32)
            sketch = PolynomialSketch(4, n_components=32, expansion="none", random_state=0).fit(X)
            if fits:
                assert np.isfinite(sketch.transform(X)).all()
            else:
                with pytest.raises(ValueError, match="overflows float32"):
                    sketch.transform(X)

    @pytest.mark.parametrize("coef0", [1e20, 1e200])
    def test_constant_term(self, coef0: float) -> None:
        X = rows_of_norm(1.0, np.float64)
        sketch = PolynomialSketch(20, coef0=coef0, n_components=32, expansion="none").fit(X)
        with pytest.raises(ValueError, match="overflows float64"):
            sketch.transform(X)

    @pytest.mark.parametrize("expansion", ["none", "mean"])
    def test_literal_sketch_says_what_helps(self, expansion: str) -> None:
        """Eight features at degree 2000: the sketch's norms leave float32."""
        X = rows_of_norm(1.0, np.float32, columns=10)
        sketch = PolynomialSketch(
            2000, n_components=8, expansion=expansion, norm_preserving=False, random_state=0
        ).fit(X)
        with pytest.raises(ValueError, match="sketched features overflow float32") as caught:
            sketch.transform(X)
        for remedy in ("norm_preserving=True", "n_components", "float64"):
            assert remedy in str(caught.value)

    @each_map
    @each_float
    def test_largest_numbers(self, parameters: dict[str, Any], dtype: Any) -> None:
        X = np.full((6, 60), np.finfo(dtype).max)
        sketch = PolynomialSketch(3, n_components=32, random_state=0, **parameters)
        with pytest.raises(ValueError, match=f"overflows {np.dtype(dtype).name}"):
            sketch.fit_transform(X)

    @each_map
    def test_far_beyond_every_float(self, parameters: dict[str, Any]) -> None:
        """The dtype named is that of the rows, even if float64 would not help."""
        sketch = PolynomialSketch(1000, n_components=32, random_state=0, **parameters)
        with pytest.raises(ValueError, match="overflows float32"):
            sketch.fit_transform(rows_of_norm(1e10, np.float32))


REFUSAL = re.compile("[Ss]cale the (rows|data)|radius of convergence|power series|more n_comp")
# Powers of ten that rows are multiplied by, and what of a kernel's values is far from zero.
FACTORS = {np.float32: (-38, -20, -5, 5, 10, 19, 30), np.float64: (-140, -20, 5, 19, 140, 200)}
NORMAL = {np.float32: 1e-30, np.float64: 1e-280}
# Powers of two by which a homogeneous map may be scaled, times its homogeneity.
ROOM = {np.float32: 45, np.float64: 400}
OVERFLOWING = {
    name: case
    for name, case in HOMOGENEOUS.items()
    if case.homogeneity and case.parameters.get("method") != "random"
}


def multiplied(case: Case, exponent: int, dtype: Any) -> NDArray[Any]:
    with np.errstate(under="ignore"):
        rows: NDArray[Any] = (case.rows() * 10.0**exponent).astype(dtype)
    return rows


def check_features(case: Case, sketch: Any, X: NDArray[Any]) -> None:
    """Features are finite, and of the right norm where that is no tiny number."""
    Z = sketch.transform(X)
    assert np.isfinite(Z).all()
    if case.diagonal != "neither":
        expected, dtype = case.expected_diagonal(sketch, X), X.dtype.type
        normal = expected > NORMAL[dtype]
        lengths = squared_lengths(Z)[normal]
        np.testing.assert_allclose(lengths, expected[normal], rtol=TOLERANCE[dtype])


def refusal_of(case: Case, sketch: Any, X: NDArray[Any]) -> str:
    """Return the message if the rows are refused by a sketch, fitted or not; else nothing."""
    try:
        check_features(case, sketch if hasattr(sketch, "seed_") else sketch.fit(X), X)
    except ValueError as error:
        return str(error)
    return ""


class TestEveryMap:
    """No map returns what is not finite, and none warns: rows are right or refused."""

    @each_case_with(dtype=FLOATS)
    def test_other_scales_than_fit_has_seen(self, case: Case, dtype: Any) -> None:
        for exponent in FACTORS[dtype]:
            X = multiplied(case, exponent, dtype)
            refusal = refusal_of(case, case.fitted(dtype=dtype), X)
            assert not refusal or (exponent > 0 and REFUSAL.search(refusal))

    @pytest.mark.filterwarnings("ignore:.*gamma was set to")
    @each_case_with(dtype=FLOATS)
    def test_any_scale(self, case: Case, dtype: Any) -> None:
        for exponent in (-20, 5, 19):
            refusal = refusal_of(case, case.sketch(), multiplied(case, exponent, dtype))
            assert not refusal or (exponent > 0 and REFUSAL.search(refusal))

    @each_case_with(dtype=FLOATS)
    def test_smallest_numbers(self, case: Case, dtype: Any) -> None:
        """Entries with few digits in float32, and squared norms of zero in float64."""
        X = multiplied(case, -43 if dtype == np.float32 else -165, dtype)
        assert X.any()
        assert np.isfinite(case.fitted(dtype=dtype).transform(X)).all()
        assert np.isfinite(case.sketch().fit_transform(X)).all()

    @each_case_with(HOMOGENEOUS, dtype=FLOATS)
    def test_scale_of_homogeneous_maps_is_exact(self, case: Case, dtype: Any) -> None:
        degree = case.homogeneity or 0
        for sign in (-1, 1):
            exponent = sign * ROOM[dtype] // max(degree, 1)
            Z = case.fitted(dtype=dtype).transform(np.ldexp(case.rows(dtype=dtype), exponent))
            expected = np.ldexp(case.features(dtype=dtype), degree * exponent)
            np.testing.assert_array_equal(Z, expected)

    @each_float
    @pytest.mark.parametrize("tail", ["truncate", "sample", "fit"])
    def test_rows_of_norm_one_are_inside_the_disk(self, dtype: Any, tail: str) -> None:
        """Though roundings make their norms a little more than one."""
        X = rows_of_norm(1.0, dtype)
        assert squared_lengths(X).max() > 1
        sketch = DotProductSketch("arcsin", n_components=64, tail=tail, random_state=0).fit(X)
        assert np.isfinite(sketch.transform(X)).all()

    @pytest.mark.parametrize("case", OVERFLOWING.values(), ids=OVERFLOWING.keys())
    @each_container
    def test_overflow_names_dtype_and_remedy(self, case: Case, container: Any) -> None:
        assert case.homogeneity
        X = np.ldexp(case.rows(dtype=np.float32), 70 // case.homogeneity + 2)
        with pytest.raises(ValueError, match="overflows float32") as caught:
            case.fitted(dtype=np.float32).transform(container(X))
        assert "Scale the rows of X" in str(caught.value)
        assert "pass X as float64" in str(caught.value)
        assert np.isfinite(case.fitted(dtype=np.float32).transform(X.astype(np.float64))).all()

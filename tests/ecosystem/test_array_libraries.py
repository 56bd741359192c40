"""Rows of other array libraries: read in place, and features in the library of the rows.

The strict implementation of the array API stands for all of them. With POWERSKETCH_TEST_TORCH=1,
torch's tensors are tested as well, which are those that users have.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from powersketch import (
    LearnedMetric,
    LeverageNystroem,
    PolynomialSketch,
    SketchedKernelRidge,
    ecosystem,
    validation,
)
from powersketch.exceptions import InputTypeError
from powersketch.kernels import Gaussian
from tests.feature_maps.cases import ESTIMATORS, FLOATS, assert_same_bits, uncentred

TORCH = os.environ.get("POWERSKETCH_TEST_TORCH") == "1"
each_library = pytest.mark.parametrize(
    "library", ["array_api_strict", *(["torch"] if TORCH else [])]
)
each_dtype = pytest.mark.parametrize("dtype", FLOATS)
MAPS: list[Any] = [estimator(random_state=0) for estimator in ESTIMATORS]
MAPS += [LeverageNystroem(n_components=10, random_state=0), LearnedMetric(random_state=0)]
each_map = pytest.mark.parametrize("sketch", MAPS, ids=lambda sketch: type(sketch).__name__)


def dispatch() -> Any:
    return sklearn.config_context(array_api_dispatch=True)


def of_library(library: str, X: Any) -> Any:
    return importlib.import_module(library).asarray(X)


class TestMaps:
    @each_library
    @each_dtype
    @each_map
    def test_features_come_in_the_library_of_the_rows(
        self, library: str, dtype: Any, sketch: Any
    ) -> None:
        X, y = uncentred(60, 12, dtype), np.arange(60.0)
        expected = clone(sketch).fit(X, y).transform(X)
        rows = of_library(library, X)
        with dispatch():
            features = clone(sketch).fit(rows, of_library(library, y)).transform(rows)
        assert type(features) is type(rows)
        assert features.device == rows.device
        assert_same_bits(np.asarray(features), expected)

    @each_library
    @each_map
    def test_without_dispatch_they_are_numpy_arrays(self, library: str, sketch: Any) -> None:
        X, y = uncentred(60, 12), np.arange(60.0)
        features = clone(sketch).fit(of_library(library, X), y).transform(of_library(library, X))
        assert type(features) is np.ndarray
        assert_same_bits(features, clone(sketch).fit(X, y).transform(X))

    @each_library
    def test_a_map_takes_rows_of_any_library(self, library: str) -> None:
        X = uncentred(60, 12)
        sketch = PolynomialSketch(random_state=0)
        with dispatch():
            features = sketch.fit(of_library(library, X)).transform(X)
        assert type(features) is np.ndarray

    @each_library
    @pytest.mark.parametrize("container", ["pandas", "polars"])
    def test_tables_are_written_from_them(self, library: str, container: str) -> None:
        X = uncentred(60, 12)
        sketch = PolynomialSketch(random_state=0).set_output(transform=container)
        with dispatch():
            table = sketch.fit_transform(of_library(library, X))
        plain = PolynomialSketch(random_state=0).fit_transform(X)
        assert type(table).__module__.startswith(container)
        assert_same_bits(np.ascontiguousarray(table.to_numpy()), plain)

    def test_the_features_are_on_the_device_of_the_rows(self) -> None:
        strict = importlib.import_module("array_api_strict")
        rows = strict.asarray(uncentred(60, 12), device=strict.Device("device1"))
        with dispatch():
            assert PolynomialSketch().fit_transform(rows).device == rows.device


class TestOthers:
    @each_library
    def test_models_and_kernels_take_them(self, library: str) -> None:
        X, y = uncentred(60, 12), np.arange(60.0)
        rows, targets = of_library(library, X), of_library(library, y)
        with dispatch():
            predicted = SketchedKernelRidge("rbf", random_state=0).fit(rows, targets).predict(rows)
            values = Gaussian(gamma=0.5)(rows)
        np.testing.assert_array_equal(
            predicted, SketchedKernelRidge("rbf", random_state=0).fit(X, y).predict(X)
        )
        np.testing.assert_array_equal(values, Gaussian(gamma=0.5)(X))

    @each_library
    def test_pipelines(self, library: str) -> None:
        rows = of_library(library, uncentred(60, 12))
        model = make_pipeline(PolynomialSketch(random_state=0), PolynomialSketch(random_state=1))
        with dispatch():
            assert type(model.fit_transform(rows)) is type(rows)


class TestMemory:
    @each_library
    def test_rows_are_not_copied(self, library: str) -> None:
        X = uncentred(60, 12)
        assert np.shares_memory(validation.sound_array("X", of_library(library, X)), X)

    @each_library
    def test_features_are_not_copied(self, library: str) -> None:
        Z = uncentred(60, 12)
        with dispatch():
            converted = ecosystem.in_library_of(
                of_library(library, Z.copy()), Z, PolynomialSketch()
            )
        assert np.shares_memory(np.asarray(converted), Z)


class TestRefusals:
    def test_what_is_not_in_main_memory(self) -> None:
        """There is no such device here: an array that says so stands for one."""

        class Elsewhere:
            dtype, device, shape, ndim = "float32", "cuda:0", (3, 2), 2

            def __array_namespace__(self) -> Any:
                raise AssertionError("nothing is to be computed there")

            def __dlpack__(self, **_: Any) -> Any:
                raise BufferError("memory of another device")

            def __dlpack_device__(self) -> tuple[int, int]:
                return 2, 0

        with pytest.raises(InputTypeError, match=r"device cuda:0.*main memory.*\.cpu\(\)"):
            PolynomialSketch().fit(Elsewhere())


if TORCH:

    @pytest.mark.parametrize("change", ["requires_grad_", "bfloat16", "to_sparse"])
    def test_tensors_that_numpy_cannot_read(change: str) -> None:
        X = of_library("torch", uncentred(6, 3))
        sketch = PolynomialSketch().fit(X)
        with pytest.raises(InputTypeError, match=r"detach\(\)\.cpu\(\)"):
            sketch.transform(getattr(X.clone(), change)())

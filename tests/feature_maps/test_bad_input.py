"""What is refused: the error has the right type, names the value and says what to do."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.feature_maps.base import FeatureMap
from tests.feature_maps.cases import (
    CASES,
    ESTIMATORS,
    Case,
    assert_same_bits,
    each_case,
    each_case_with,
    each_estimator,
    uncentred,
)

X = uncentred(30, 6)

# (value, error, what the message must contain besides parameter and value)
Refusals = list[tuple[Any, type[Exception], str]]

INTEGERS: Refusals = [
    (0, ValueError, "at least 1"),
    (-5, ValueError, "at least 1"),
    (10.0, TypeError, "integer"),
    (True, TypeError, "integer"),
    ("many", TypeError, "integer"),
    (None, TypeError, "integer"),
]
GAMMAS: Refusals = [
    (0.0, ValueError, "above 0"),
    (-0.5, ValueError, "above 0"),
    (np.nan, ValueError, "finite"),
    (np.inf, ValueError, "finite"),
    ("auto", ValueError, "'scale'"),
    (None, TypeError, "real number"),
]
EXPANSIONS: Refusals = [
    ("exact", ValueError, "'mean'"),
    (True, ValueError, "'none'"),
]
TAILS: dict[str, Refusals] = {
    "tail": [("cut", ValueError, "'truncate'"), (None, ValueError, "'sample'")],
    "tail_eps": [
        (0.0, ValueError, "above 0"),
        (-1e-3, ValueError, "above 0"),
        (np.nan, ValueError, "finite"),
        (np.inf, ValueError, "finite"),
        ("small", TypeError, "number"),
        (True, TypeError, "number"),
        (None, TypeError, "number"),
    ],
}
SHARED: dict[str, Refusals] = {
    "n_components": INTEGERS,
    "base_sketch": [("fourier", ValueError, "'srht'"), (3, ValueError, "'osnap'")],
    "norm_preserving": [
        (1, TypeError, "allowed are True and False"),
        ("yes", TypeError, "allowed are True and False"),
        (None, TypeError, "allowed are True and False"),
    ],
    "internal_components": [
        (99, ValueError, "n_components=100"),
        (0, ValueError, "n_components=100"),
        (128.0, TypeError, "integer"),
    ],
    "compress_from": [
        (99, ValueError, "n_components=100"),
        (128.0, TypeError, "integer"),
    ],
    "n_jobs": [
        (0, ValueError, "-1 for all"),
        (1.5, TypeError, "integer"),
        ("2", TypeError, "integer"),
        (True, TypeError, "integer"),
    ],
    "random_state": [
        (-1, ValueError, "integer from 0 to 4294967295"),
        (2**32, ValueError, "integer from 0 to 4294967295"),
        ("seed", TypeError, "pass an integer"),
        (0.5, TypeError, "pass an integer"),
    ],
}
OWN: dict[type[FeatureMap], dict[str, Refusals]] = {
    PolynomialSketch: {
        "degree": [
            *INTEGERS,
            (2.5, TypeError, "integer"),
            (2.0, TypeError, "integer"),
            ("2", TypeError, "integer"),
        ],
        "coef0": [
            (-1.0, ValueError, "at least 0"),
            (np.nan, ValueError, "finite"),
            (np.inf, ValueError, "finite"),
            ("1", TypeError, "real number"),
            (None, TypeError, "real number"),
        ],
        "gamma": GAMMAS,
        "method": [("branch", ValueError, "'power'"), (None, ValueError, "'power'")],
        "expansion": EXPANSIONS,
    },
    GaussianSketch: {
        "gamma": GAMMAS,
        "method": [("sorf", ValueError, "'fourier'"), (None, ValueError, "'single_power'")],
    },
    DotProductSketch: {
        "series": [
            ("tan", ValueError, "'exp'"),
            (3, TypeError, "coefficients"),
            (None, TypeError, "coefficients"),
        ],
        "method": [("random", ValueError, "'power'"), (None, ValueError, "'power'")],
        "expansion": EXPANSIONS,
        **TAILS,
    },
    ArcCosineSketch: {
        "order": [
            (3, ValueError, "0 to 2"),
            (-1, ValueError, "0 to 2"),
            (1.0, TypeError, "integer"),
            (None, TypeError, "integer"),
        ],
        "depth": INTEGERS,
        "method": [("fourier", ValueError, "'random'"), (None, ValueError, "'power'")],
        "expansion": EXPANSIONS,
        **TAILS,
    },
    NeuralTangentSketch: {
        "depth": INTEGERS,
        "train_output": [(1, TypeError, "True and False"), (None, TypeError, "True and False")],
        "weight_variance": [
            (0.0, ValueError, "above 0"),
            (-2.0, ValueError, "above 0"),
            (np.inf, ValueError, "finite"),
            ("2", TypeError, "real number"),
        ],
        "bias_variance": [
            (-0.1, ValueError, "at least 0"),
            (np.nan, ValueError, "finite"),
            (None, TypeError, "real number"),
        ],
        "method": [("fourier", ValueError, "'random'"), (None, ValueError, "'power'")],
        "composition": [("deep", ValueError, "'layers'"), (None, ValueError, "'whole'")],
        "expansion": EXPANSIONS,
        **TAILS,
    },
}
POWER_METHODS: Refusals = [("power", ValueError, "'squaring'"), (None, ValueError, "'ctr'")]
for _estimator in ESTIMATORS:
    if _estimator is not PolynomialSketch:
        OWN[_estimator]["power_method"] = POWER_METHODS
BAD_PARAMETERS = [
    (estimator, name, *refusal)
    for estimator in ESTIMATORS
    for name, refusals in {**OWN[estimator], **SHARED}.items()
    for refusal in refusals
]

each_bad_parameter = pytest.mark.parametrize(
    ("estimator", "name", "value", "error", "advice"),
    BAD_PARAMETERS,
    ids=[f"{estimator.__name__}-{name}={value!r}" for estimator, name, value, *_ in BAD_PARAMETERS],
)

_FIRST = {(estimator, name): (value, error) for estimator, name, value, error, _ in BAD_PARAMETERS}
each_parameter = pytest.mark.parametrize(
    ("estimator", "name", "value", "error"),
    [(*which, *refusal) for which, refusal in _FIRST.items()],
    ids=[f"{estimator.__name__}-{name}" for estimator, name in _FIRST],
)

# Refused for what the values mean: (estimator, parameters, what the message must contain)
CONFLICTS: list[tuple[type[FeatureMap], dict[str, Any], str]] = [
    (GaussianSketch, {"method": "fourier", "n_components": 1}, "n_components=1 .*at least 2"),
    (DotProductSketch, {"series": [1.0, -0.5]}, "coefficient 1 is -0.5.*leave it out"),
    (DotProductSketch, {"series": []}, r"shape \(0,\).*C_0, ..., C_n"),
    (DotProductSketch, {"series": [[1.0, 2.0]]}, r"shape \(1, 2\).*C_0, ..., C_n"),
    (DotProductSketch, {"series": [1.0, np.nan]}, "coefficient 1 is nan.*replace it"),
    (DotProductSketch, {"series": np.cos}, "coefficient 2 of cos is -0.5"),
    (
        NeuralTangentSketch,
        {"depth": 2, "bias_variance": 0.5, "composition": "whole"},
        "depth=2 and bias_variance=0.5.*composition='layers'",
    ),
    (
        NeuralTangentSketch,
        {"depth": 2, "bias_variance": 0.5, "n_components": 7},
        "n_components=7 .*at least 8",
    ),
    (
        NeuralTangentSketch,
        {"depth": 2, "composition": "layers", "n_components": 7},
        "n_components=7 .*at least 8",
    ),
    (
        NeuralTangentSketch,
        {"depth": 3, "method": "random", "n_components": 7},
        "n_components=7 .*at least 8",
    ),
]


def with_entry(value: float) -> Any:
    changed = X.copy()
    changed[3, 2] = value
    return changed


# (rows, error, what the message must contain)
BAD_ROWS: dict[str, tuple[Any, type[Exception], str]] = {
    "NaN": (with_entry(np.nan), ValueError, "contains NaN"),
    "infinity": (with_entry(np.inf), ValueError, "contains infinity"),
    "minus infinity": (with_entry(-np.inf), ValueError, "contains infinity"),
    "sparse NaN": (sp.csr_array(with_entry(np.nan)), ValueError, "contains NaN"),
    "float32 infinity": (with_entry(np.inf).astype(np.float32), ValueError, "infinity"),
    "complex": (X + 1j, ValueError, "Complex data not supported"),
    "sparse complex": (sp.csr_array(X + 1j), ValueError, "Complex data not supported"),
    "strings": (np.array([["a", "b"]] * 3), ValueError, "convert string to float: .*'a'"),
    "objects": (np.array([["a", 1]] * 3, dtype=object), ValueError, "could not convert"),
    "no rows": (X[:0], ValueError, r"0 sample\(s\).*minimum of 1"),
    "no columns": (X[:, :0], ValueError, r"0 feature\(s\).*minimum of 1"),
    "sparse without rows": (sp.csr_array((0, 6)), ValueError, r"0 sample\(s\)"),
    "sparse without columns": (sp.csr_array((6, 0)), ValueError, r"0 feature\(s\)"),
    "one dimension": (X[0], ValueError, "(?s)Expected 2D array.*Reshape your data"),
    "three dimensions": (X[None], ValueError, "dim 3"),
    "a number": (3.0, ValueError, "Expected 2D array"),
    "ragged lists": ([[1.0, 2.0], [3.0]], ValueError, "inhomogeneous"),
}

each_bad_row = pytest.mark.parametrize(
    ("rows", "error", "message"), BAD_ROWS.values(), ids=BAD_ROWS.keys()
)


class TestParameters:
    @each_bad_parameter
    def test_refused_by_fit(
        self,
        estimator: type[FeatureMap],
        name: str,
        value: Any,
        error: type[Exception],
        advice: str,
    ) -> None:
        sketch = estimator(**{name: value})
        with pytest.raises(error) as caught:
            sketch.fit(X)
        message = str(caught.value)
        assert f"{name}={value!r}" in message
        assert advice in message
        assert not hasattr(sketch, "kernel_")

    @each_parameter
    def test_failed_fit_leaves_the_last_one(
        self,
        estimator: type[FeatureMap],
        name: str,
        value: Any,
        error: type[Exception],
    ) -> None:
        sketch: Any = estimator(random_state=0).fit(X)
        Z, kernel = sketch.transform(X), sketch.kernel_
        good = getattr(sketch, name)
        with pytest.raises(error):
            sketch.set_params(**{name: value}).fit(2 * X)
        sketch.set_params(**{name: good})
        assert sketch.kernel_ is kernel
        assert_same_bits(sketch.transform(X), Z)

    @pytest.mark.parametrize(("estimator", "parameters", "message"), CONFLICTS)
    def test_conflicts(
        self, estimator: type[FeatureMap], parameters: dict[str, Any], message: str
    ) -> None:
        sketch = estimator(**parameters)
        with pytest.raises(ValueError, match=message):
            sketch.fit(X)
        assert not hasattr(sketch, "kernel_")

    def test_numpy_numbers_are_numbers(self) -> None:
        sketch = PolynomialSketch(
            np.int64(3),
            gamma=np.float32(0.5),
            coef0=np.int32(1),
            n_components=np.uint8(60),
            norm_preserving=np.True_,
            internal_components=np.int16(64),
            random_state=np.int64(3),
            n_jobs=np.int64(1),
        )
        assert sketch.fit_transform(X).shape == (30, 60)
        assert (sketch.kernel_.degree, sketch.kernel_.gamma, sketch.kernel_.coef0) == (3, 0.5, 1.0)

    @pytest.mark.parametrize(
        ("sketch", "plain"),
        [
            (GaussianSketch(np.float32(0.5)), GaussianSketch(0.5)),
            (DotProductSketch(np.array([1, 0, 2])), DotProductSketch([1.0, 0.0, 2.0])),
            (DotProductSketch(tail_eps=np.float32(0.125)), DotProductSketch(tail_eps=0.125)),
            (ArcCosineSketch(np.int8(2), np.uint8(2)), ArcCosineSketch(2, 2)),
            (
                NeuralTangentSketch(np.int64(2), train_output=np.False_, bias_variance=1),
                NeuralTangentSketch(2, train_output=False, bias_variance=1.0),
            ),
        ],
        ids=str,
    )
    def test_numpy_numbers_mean_what_they_are(self, sketch: FeatureMap, plain: FeatureMap) -> None:
        options = {"n_components": np.uint8(60), "random_state": np.int64(3), "n_jobs": np.int8(1)}
        Z = plain.set_params(n_components=60, random_state=3).fit_transform(X)
        assert_same_bits(sketch.set_params(**options).fit_transform(X), Z)


class TestRows:
    @each_estimator
    @each_bad_row
    def test_refused_by_fit(
        self, estimator: type[FeatureMap], rows: Any, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            estimator().fit(rows)

    @each_estimator
    @each_bad_row
    def test_refused_by_transform(
        self, estimator: type[FeatureMap], rows: Any, error: type[Exception], message: str
    ) -> None:
        columns = rows.shape[1] if getattr(rows, "ndim", 0) == 2 and rows.shape[1] else 2
        sketch = estimator(random_state=0).fit(uncentred(10, columns))
        with pytest.raises(error, match=message):
            sketch.transform(rows)

    @each_estimator
    @each_bad_row
    def test_failed_fit_leaves_the_last_one(
        self, estimator: type[FeatureMap], rows: Any, error: type[Exception], message: str
    ) -> None:
        sketch: Any = estimator(random_state=0).fit(X)
        Z, kernel = sketch.transform(X), sketch.kernel_
        with pytest.raises(error, match=message):
            sketch.fit(rows)
        assert sketch.kernel_ is kernel
        assert_same_bits(sketch.transform(X), Z)

    @each_case_with(container=[np.asarray, sp.csr_array])
    @pytest.mark.parametrize(
        ("value", "message"), [(np.nan, "contains NaN"), (-np.inf, "contains infinity")]
    )
    def test_no_map_takes_what_is_not_finite(
        self, case: Case, container: Any, value: float, message: str
    ) -> None:
        """The norms of the rows tell, so that every map has to look at them."""
        rows, sketch = case.rows(), copy(case.fitted())
        state = dict(vars(sketch))
        rows[17, -1] = value
        for fails in (sketch.transform, sketch.fit):
            with pytest.raises(ValueError, match=message):
                fails(container(rows))
        assert vars(sketch) == state
        assert_same_bits(sketch.transform(case.rows()), case.features())

    @each_estimator
    def test_failed_fit_on_other_columns_leaves_the_last_one(
        self, estimator: type[FeatureMap]
    ) -> None:
        names = [f"column {i}" for i in range(X.shape[1])]
        frame = pd.DataFrame(X, columns=names)
        sketch: Any = estimator(n_components=10, random_state=0).fit(frame)
        Z = sketch.transform(frame)
        with pytest.raises(ValueError, match=r"overflows float64|exceeds the largest float64"):
            sketch.fit(np.full((4, X.shape[1] + 2), 1e200))
        assert sketch.n_features_in_ == X.shape[1]
        assert sketch.feature_names_in_.tolist() == names
        assert_same_bits(sketch.transform(frame), Z)

    @each_estimator
    @pytest.mark.parametrize("columns", [1, 5, 7, 600])
    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    def test_other_number_of_columns(
        self, estimator: type[FeatureMap], columns: int, container: Any
    ) -> None:
        sketch = estimator().fit(X)
        with pytest.raises(ValueError, match=f"X has {columns} features.*expecting 6 features"):
            sketch.transform(container(uncentred(4, columns)))

    @each_estimator
    def test_data_frame_with_text(self, estimator: type[FeatureMap]) -> None:
        with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
            estimator().fit(pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]}))


class TestOverflowDuringFit:
    @pytest.mark.parametrize("name", ["mean", "chosen by measuring"])
    def test_leaves_the_last_fit(self, name: str) -> None:
        case = CASES[name]
        rows, sketch = case.rows(), case.sketch()
        Z = sketch.fit_transform(rows)
        seed, kernel, row_map = sketch.seed_, sketch.kernel_, sketch._row_map
        with pytest.raises(ValueError, match="overflows"):
            sketch.set_params(degree=200, random_state=6).fit(1e100 * rows)
        assert (sketch.seed_, sketch.kernel_, sketch._row_map) == (seed, kernel, row_map)
        assert_same_bits(sketch.transform(rows), Z)


class TestNotFitted:
    @each_case
    def test_transform(self, case: Case) -> None:
        name = case.estimator.__name__
        with pytest.raises(NotFittedError, match=f"{name} instance is not fitted yet"):
            case.sketch().transform(case.rows())

    @each_estimator
    def test_names_of_the_output(self, estimator: type[FeatureMap]) -> None:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            estimator().get_feature_names_out()

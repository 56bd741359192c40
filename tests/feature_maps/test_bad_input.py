"""What is refused: the error has the right type, names the value and says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from powersketch import PolynomialSketch
from tests.feature_maps.maps import CASES, Case, assert_same_bits, each_case, uncentred

X = uncentred(30, 6)

# (parameter, value, error, what the message must contain besides parameter and value)
BAD_PARAMETERS: list[tuple[str, Any, type[Exception], str]] = [
    ("degree", 0, ValueError, "at least 1"),
    ("degree", -2, ValueError, "at least 1"),
    ("degree", 2.5, TypeError, "integer"),
    ("degree", 2.0, TypeError, "integer"),
    ("degree", True, TypeError, "integer"),
    ("degree", "2", TypeError, "integer"),
    ("degree", None, TypeError, "integer"),
    ("coef0", -1.0, ValueError, "at least 0"),
    ("coef0", np.nan, ValueError, "finite"),
    ("coef0", np.inf, ValueError, "finite"),
    ("coef0", "1", TypeError, "real number"),
    ("coef0", None, TypeError, "real number"),
    ("gamma", 0.0, ValueError, "above 0"),
    ("gamma", -0.5, ValueError, "above 0"),
    ("gamma", np.nan, ValueError, "finite"),
    ("gamma", np.inf, ValueError, "finite"),
    ("gamma", "auto", ValueError, "'scale'"),
    ("gamma", None, TypeError, "real number"),
    ("n_components", 0, ValueError, "at least 1"),
    ("n_components", -5, ValueError, "at least 1"),
    ("n_components", 10.0, TypeError, "integer"),
    ("n_components", True, TypeError, "integer"),
    ("n_components", "many", TypeError, "integer"),
    ("method", "tree", ValueError, "'power'"),
    ("method", None, ValueError, "'power'"),
    ("base_sketch", "fourier", ValueError, "'srht'"),
    ("base_sketch", 3, ValueError, "'osnap'"),
    ("expansion", "exact", ValueError, "'mean'"),
    ("expansion", True, ValueError, "'none'"),
    ("norm_preserving", 1, TypeError, "True or False"),
    ("norm_preserving", "yes", TypeError, "True or False"),
    ("norm_preserving", None, TypeError, "True or False"),
    ("internal_components", 99, ValueError, "n_components=100"),
    ("internal_components", 0, ValueError, "n_components=100"),
    ("internal_components", 128.0, TypeError, "integer"),
    ("n_jobs", 0, ValueError, "-1 for all"),
    ("n_jobs", 1.5, TypeError, "integer"),
    ("n_jobs", "2", TypeError, "integer"),
    ("n_jobs", True, TypeError, "integer"),
    ("random_state", -1, ValueError, "integer in [0"),
    ("random_state", 2**32, ValueError, "integer in [0"),
    ("random_state", "seed", TypeError, "pass an integer"),
    ("random_state", 0.5, TypeError, "pass an integer"),
]

each_bad_parameter = pytest.mark.parametrize(
    ("name", "value", "error", "advice"),
    BAD_PARAMETERS,
    ids=[f"{name}={value!r}" for name, value, _, _ in BAD_PARAMETERS],
)


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
        self, name: str, value: Any, error: type[Exception], advice: str
    ) -> None:
        sketch = PolynomialSketch(**{name: value})
        with pytest.raises(error) as caught:
            sketch.fit(X)
        message = str(caught.value)
        assert f"{name}={value!r}" in message
        assert advice in message
        assert not hasattr(sketch, "kernel_")

    @each_bad_parameter
    def test_failed_fit_leaves_the_last_one(
        self, name: str, value: Any, error: type[Exception], advice: str
    ) -> None:
        sketch = PolynomialSketch(random_state=0).fit(X)
        Z, kernel = sketch.transform(X), sketch.kernel_
        good = getattr(sketch, name)
        with pytest.raises(error):
            sketch.set_params(**{name: value}).fit(2 * X)
        sketch.set_params(**{name: good})
        assert sketch.kernel_ is kernel
        assert_same_bits(sketch.transform(X), Z)

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


class TestRows:
    @each_bad_row
    def test_refused_by_fit(self, rows: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            PolynomialSketch().fit(rows)

    @each_bad_row
    def test_refused_by_transform(self, rows: Any, error: type[Exception], message: str) -> None:
        columns = rows.shape[1] if getattr(rows, "ndim", 0) == 2 and rows.shape[1] else 2
        sketch = PolynomialSketch().fit(uncentred(10, columns))
        with pytest.raises(error, match=message):
            sketch.transform(rows)

    @each_bad_row
    def test_failed_fit_leaves_the_last_one(
        self, rows: Any, error: type[Exception], message: str
    ) -> None:
        sketch = PolynomialSketch(random_state=0).fit(X)
        Z, kernel = sketch.transform(X), sketch.kernel_
        with pytest.raises(error, match=message):
            sketch.fit(rows)
        assert sketch.kernel_ is kernel
        assert_same_bits(sketch.transform(X), Z)

    def test_failed_fit_on_other_columns_leaves_the_last_one(self) -> None:
        names = [f"column {i}" for i in range(X.shape[1])]
        frame = pd.DataFrame(X, columns=names)
        sketch = PolynomialSketch(n_components=10, random_state=0).fit(frame)
        Z = sketch.transform(frame)
        with pytest.raises(ValueError, match="overflows float64"):
            sketch.fit(np.full((4, X.shape[1] + 2), 1e200))
        assert sketch.n_features_in_ == X.shape[1]
        assert sketch.feature_names_in_.tolist() == names
        assert_same_bits(sketch.transform(frame), Z)

    @pytest.mark.parametrize("columns", [1, 5, 7, 600])
    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    def test_other_number_of_columns(self, columns: int, container: Any) -> None:
        sketch = PolynomialSketch().fit(X)
        with pytest.raises(ValueError, match=f"X has {columns} features.*expecting 6 features"):
            sketch.transform(container(uncentred(4, columns)))

    def test_data_frame_with_text(self) -> None:
        with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
            PolynomialSketch().fit(pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]}))


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
        with pytest.raises(NotFittedError, match="PolynomialSketch instance is not fitted yet"):
            case.sketch().transform(case.rows())

    def test_names_of_the_output(self) -> None:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            PolynomialSketch().get_feature_names_out()

"""Iterations give what Gram matrices give, and sparse columns are never made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from powersketch.comparison.measure import peak_bytes
from powersketch.exceptions import InputError
from tests.kernel_ridge.ridge_data import ridge, weights


def documents(rows: int = 200, columns: int = 5000, count: int | None = None) -> tuple[Any, Any]:
    """Return rows of few words, and a linear function of these with noise."""
    generator = np.random.default_rng(0)
    X = sp.random_array((rows, columns), density=0.01, rng=generator, format="csr")
    slopes = generator.normal(size=columns if count is None else (columns, count))
    y = X @ slopes
    return X, y + 0.1 * generator.normal(size=y.shape) + 2.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("count", [None, 2])
def test_they_give_ridge_regression(fit_intercept: bool, weighted: bool, count: int | None) -> None:
    X, y = documents(count=count)
    w = weights(200) + 0.1 if weighted else None
    model = ridge("linear", alpha=0.5, fit_intercept=fit_intercept, random_state=0).fit(X, y, w)
    peer = Ridge(0.5, fit_intercept=fit_intercept).fit(X.toarray(), y, w)
    np.testing.assert_allclose(model.predict(X), peer.predict(X.toarray()), rtol=0, atol=5e-4)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=5e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=5e-4)


def test_a_column_of_zero_mean_keeps_the_intercept() -> None:
    """All means are zero here, and the intercept is the mean of the targets all the same."""
    X, y = documents(100)
    both = sp.vstack((X, -X)).tocsr()
    model = ridge("linear", alpha=0.5, random_state=0).fit(both, np.append(y, y))
    np.testing.assert_allclose(model.intercept_, y.mean(), rtol=1e-4)


def test_memory_stays_near_the_rows() -> None:
    X, y = documents(2000, 20_000)
    model = ridge("linear", alpha=0.5, random_state=0)
    model.fit(X[:50], y[:50])
    assert peak_bytes(lambda: model.fit(X, y)) < 0.1 * 8 * X.shape[0] * X.shape[1]


def test_blocks_cannot_be_added_in_silence() -> None:
    X, y = documents()
    model = ridge("linear", alpha=0.5, random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(InputError, match=r"solved by iterations, .*on a clone"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)

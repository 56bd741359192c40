"""Absurd rows, targets, weights and penalties: named or refused, and never a silent loss."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from powersketch import PolynomialSketch, solve_kernel_system
from powersketch.exceptions import InputError, OutlierWarning
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernels import ArcCosine, Gaussian, Polynomial
from powersketch.linalg import CholeskyFactor
from tests.kernel_ridge.ridge_data import Float64, classifier, features, ridge, waves

POLYNOMIAL = Polynomial(2, 0.3, 1.0)
KINDS = ("sketch", "landmarks", "exact", "row-sketch")


def with_value(array: Float64, row: int, value: float) -> Float64:
    changed = array.copy()
    changed[row] = value
    return changed


MODELS: dict[str, dict[str, Any]] = {
    **{name: {"kernel": name} for name in ("polynomial", "arc-cosine", "neural-tangent")},
    "dot-product": {"kernel": "dot-product"},
    "gaussian": {"kernel": "gaussian"},
    "kernel": {"kernel": POLYNOMIAL},
    "chosen": {"features": "auto", "kernel": "arc-cosine"},
    "landmarks": {"kernel": POLYNOMIAL, "features": "landmarks", "n_components": 40},
    "given": {"features": PolynomialSketch(2, gamma=0.3, coef0=1.0)},
    "loo": {"kernel": "neural-tangent", "alpha": "loo"},
    "gcv": {"kernel": POLYNOMIAL, "alpha": "gcv"},
    "exact": {"kernel": "arc-cosine", "features": "exact"},
    "exact series": {"kernel": "dot-product", "features": "exact"},
    "row sketch": {"kernel": POLYNOMIAL, "features": "row-sketch"},
}


VALUES = (1e20, 9.97e36, -9999.0)
CONTAINERS = (np.asarray, sparse.csr_array, np.float32)
# Every value in every container for two models; for the others, whose rows take the same way, one.
CASES = [
    *(
        (name, value, kind)
        for name in ("kernel", "exact")
        for value in VALUES
        for kind in CONTAINERS
    ),
    *((name, VALUES[i % 3], CONTAINERS[i // 3 % 3]) for i, name in enumerate(MODELS)),
]


@pytest.mark.parametrize(("name", "value", "container"), CASES)
def test_predictions_for_ordinary_rows_are_as_good_as_without_an_absurd_row(
    name: str, value: float, container: Any
) -> None:
    X, y = waves(300)
    new, targets = waves(200, seed=1)
    spoilt = X.copy()
    spoilt[7, 0] = value
    model = ridge(**MODELS[name], random_state=0)
    model.fit(container(np.delete(X, 7, axis=0)), np.delete(y, 7))
    expected = np.linalg.norm(model.predict(container(new)) - targets)
    with pytest.warns(OutlierWarning, match=r"row 7 \(") as caught:
        model.fit(container(spoilt), y)
    assert {warning.filename for warning in caught} == {__file__}
    assert np.linalg.norm(model.predict(container(new)) - targets) <= 2.0 * expected


def test_rows_left_out_are_those_without_which_the_fit_is_the_same() -> None:
    X, y = waves(300)
    w = np.ones(300)
    w[:5] = 0.0
    model = ridge(POLYNOMIAL, random_state=0)
    left = np.delete(np.arange(300), [0, 1, 2, 3, 4, 7])
    expected = model.fit(X[left], y[left]).predict(X)
    with pytest.warns(
        OutlierWarning, match=r"1 row\(s\).* row 7 \(.* left out of the fit"
    ) as caught:
        model.fit(with_value(X, 7, 1e20), y, w)  # in the numbers of the user
    assert len(caught) == 1
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10)


def test_a_bounded_kernel_keeps_the_row() -> None:
    X, y = waves(300)
    spoilt = with_value(X, 7, 1e20)
    for kernel in ("gaussian", ArcCosine(0)):
        model = ridge(kernel, features="exact", random_state=0)
        with pytest.warns(OutlierWarning, match="do not count where fit makes a choice"):
            model.fit(spoilt, y)
        assert model.X_fit_.shape == X.shape


def test_a_classifier_leaves_the_row_out() -> None:
    X, y = waves(300)
    model = classifier("arc-cosine", random_state=0)
    expected = model.fit(X, y > 0.0).score(X, y > 0.0)
    with pytest.warns(OutlierWarning, match=r"row 7 \(.* left out of the fit"):
        model.fit(with_value(X, 7, 1e20), y > 0.0)
    assert model.score(X, y > 0.0) >= expected - 0.02


@pytest.mark.parametrize("first", [False, True])
def test_blocks_of_rows_leave_the_row_out(first: bool) -> None:
    X, y = waves(300)
    model = ridge(POLYNOMIAL, random_state=0)
    spoilt = with_value(X, 9, 1e20)
    if not first:
        model.partial_fit(X, y)
    with pytest.warns(OutlierWarning, match=r"row 9 \(.* left out of the fit"):
        model.partial_fit(spoilt, y)
    assert model.statistics_.count == (299 if first else 599)
    assert model.score(X, y) > 0.5


def test_a_row_that_dwarfs_all_others_without_being_absurd_is_named() -> None:
    X, y = waves(300)
    steep = Polynomial(8, 0.3, 1.0)
    for kind in ("sketch", "exact"):
        with pytest.warns((OutlierWarning, ConvergenceWarning)) as caught:
            ridge(steep, features=kind, random_state=0).fit(with_value(X, 7, 100.0), y)
        assert caught[0].filename == __file__
        for warning in caught:
            assert "row 7 has k(x, x) up to" in str(warning.message)
            assert "larger alpha" not in str(warning.message)


def test_a_row_sketch_names_the_row_and_not_alpha() -> None:
    X, y = waves(300)
    model = ridge(Polynomial(8, 0.3, 1.0), features="row-sketch", random_state=0)
    with pytest.warns(OutlierWarning), pytest.raises(InputError, match="row 7 has") as caught:
        model.fit(with_value(X, 7, 100.0), y)
    assert "choose alpha" not in str(caught.value)


def test_kernel_systems_name_the_row() -> None:
    X, y = waves(300)
    with pytest.warns(ConvergenceWarning, match="row 7 has"):
        solve_kernel_system(with_value(X, 7, 1e20), y, POLYNOMIAL, alpha=1.0)


def test_a_factorisation_names_the_row() -> None:
    matrix = np.eye(20)
    matrix[7, 7], matrix[0, 7], matrix[7, 0] = 1e30, 1e31, 1e31
    with pytest.raises(np.linalg.LinAlgError, match="row 7 has") as caught:
        CholeskyFactor(matrix)
    assert "larger alpha" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [1e30, -1e10])
def test_an_absurd_target_is_named(kind: str, value: float) -> None:
    X, y = waves(300)
    model = ridge(Gaussian(1.0), features=kind, random_state=0)
    expected = rf"y has {re.escape(format(value, '.3g'))} in row 11.*drag every prediction"
    with pytest.warns(OutlierWarning, match=expected) as caught:
        model.fit(X, with_value(y, 11, value))
    assert caught[0].filename == __file__
    assert np.isfinite(model.predict(X)).all()


def test_an_absurd_target_among_several_and_in_blocks_is_named() -> None:
    X, y = waves(300)
    both = np.column_stack((y, with_value(y, 4, 1e30)))
    with pytest.warns(OutlierWarning, match="1e\\+30 in row 4"):
        ridge(random_state=0).fit(X, both)
    with pytest.warns(OutlierWarning, match="1e\\+30 in row 4"):
        ridge(random_state=0).partial_fit(X, both)
    w = np.ones(300)
    w[4] = 0.0
    ridge(random_state=0).fit(X, both, w)  # it is left out, and no reason to warn


@pytest.mark.parametrize("few", [1, 3])
def test_heavy_tails_and_rare_events_are_not_absurd(few: int) -> None:
    X, y = waves(400)
    events = np.zeros(400)
    events[:few] = 1e9
    tails = np.random.default_rng(0).standard_cauchy(400)
    for ordinary in (events, tails, np.exp(5.0 * y), y > 0.0):
        ridge(random_state=0).fit(X, ordinary)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("alpha", [1.0, "loo", "gcv"])
def test_targets_beyond_the_range_of_squares_are_refused(scale: float, alpha: Any) -> None:
    X, y = waves(100)
    with pytest.raises(InputError, match=r"y reaches .* divide y by a constant"):
        ridge(alpha=alpha).fit(X, scale * y)
    inside = scale**0.49
    model = ridge(alpha=alpha, random_state=0)
    np.testing.assert_allclose(
        model.fit(X, inside * y).predict(X) / inside, model.fit(X, y).predict(X), rtol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [1e300, 1e-300, 5e-324])
def test_weights_beyond_the_range_of_products_are_refused(kind: str, weight: float) -> None:
    X, y = waves(100)
    model = ridge(features=kind, random_state=0)
    for weights in (np.full(100, weight), with_value(np.ones(100), 3, weight)):
        with pytest.raises(InputError, match=r"sample_weight reaches .* multiply all weights"):
            model.fit(X, y, weights)


@pytest.mark.parametrize("weight", [1e90, 1e-90])
@pytest.mark.parametrize("alpha", ["loo", "gcv"])
def test_the_unit_of_weights_does_not_matter_to_a_path(weight: float, alpha: str) -> None:
    X, y = waves(200)
    model = ridge(alpha=alpha, random_state=0)
    expected = model.fit(X, y, np.ones(200)).predict(X)
    found = model.fit(X, y, np.full(200, weight)).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_penalty_leaves_the_mean_without_a_warning(kind: str) -> None:
    X, y = waves(100)
    for alpha in (1e200, 1e300):
        model = ridge(features=kind, alpha=alpha, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-9)
    with pytest.raises(InputError, match=r"alpha=1e\+308 is out of range; choose at most 1e\+300"):
        ridge(features=kind, alpha=1e308).fit(X, y)
    assert solve_kernel_system(X, y, Gaussian(), alpha=1e300).converged
    with pytest.raises(InputError, match="alpha="):
        ridge(features="exact", alpha=1e290).fit(X, y, np.full(100, 1e-50))


@pytest.mark.parametrize("kernel", [Gaussian(0.5), POLYNOMIAL])
@pytest.mark.parametrize("kind", ["sketch", "landmarks"])
def test_an_absurd_new_row_leaves_the_others_as_they_are(kernel: Any, kind: str) -> None:
    X, y = waves(300)
    model = ridge(kernel, features=kind, n_components=30, random_state=0).fit(X, y)
    strange = with_value(X, 5, 1e20)
    others = np.arange(300) != 5
    for found, expected in zip(
        model.predict(strange, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found[others], expected[others])


def test_a_constant_target_is_predicted() -> None:
    X, _ = waves(100)
    for kind in KINDS:
        model = ridge(features=kind, random_state=0).fit(X, np.full(100, 4.0))
        np.testing.assert_allclose(model.predict(X), 4.0, rtol=1e-9)


@pytest.mark.parametrize("kind", ["sketch", "auto"])
def test_rows_far_away_are_named_in_the_numbers_of_the_user(kind: str) -> None:
    """The Gaussian kernel is bounded: such a row spoils nothing, but is named once."""
    X, y = waves(300)
    weights = np.ones(300)
    weights[:5], weights[10:100] = 0.0, 3.0
    model = ridge(features=kind, n_components=64, random_state=0)
    with pytest.warns(OutlierWarning, match=r"row 107 \(") as caught:
        model.fit(with_value(X, 107, 1e20), y, weights)
    assert len(caught) == 1


def repeated(X: Any, w: Any, without: Any = None) -> Any:
    return TrainingRows(X, np.zeros(len(X)), w).repeated_by_weight(without)


class TestRowsRepeatedByWeight:
    def test_whole_weights_repeat_rows(self) -> None:
        X, times = features(20, 3), np.random.default_rng(0).integers(1, 5, size=20)
        np.testing.assert_array_equal(repeated(X, times.astype(float)), X.repeat(times, axis=0))

    def test_equal_weights_change_nothing(self) -> None:
        X = features(20, 3)
        assert repeated(X, None) is X
        assert repeated(X, np.full(20, 0.3)) is X

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_rows_appear_in_proportion(self, scale: float) -> None:
        X, w = np.arange(30.0)[:, np.newaxis], np.random.default_rng(1).gamma(2.0, size=30)
        rows = repeated(X, scale * w)[:, 0].astype(int)
        shares = np.bincount(rows, minlength=30) / rows.size
        assert 30 <= rows.size <= 240
        np.testing.assert_allclose(shares, w / w.sum(), rtol=0, atol=1.0 / rows.size + 1e-12)

    def test_some_rows_can_be_left_out(self) -> None:
        X, times = features(20, 3), np.random.default_rng(0).integers(1, 5, size=20).astype(float)
        left_out = np.array([3, 7])
        for w, all_rows in ((None, X), (times, X.repeat(times.astype(int), axis=0))):
            found = repeated(X, w, left_out)
            kept = ~np.isin(all_rows, X[left_out]).all(axis=1)
            np.testing.assert_array_equal(found, all_rows[kept])

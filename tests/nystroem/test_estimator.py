"""LeverageNystroem: the approximation it promises, scikit-learn's contract, input, refusals."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from powersketch import LeverageNystroem
from powersketch.exceptions import OutlierWarning, RangeWarning
from powersketch.kernels import Gaussian, Kernel, NeuralTangent, Polynomial
from powersketch.nystroem import LANDMARKS
from tests.feature_maps.cases import assert_same_bits, digits, relative_error, uncentred
from tests.kernels.kernel_cases import KERNELS, SPARSE_FORMATS

Float64 = NDArray[np.float64]
X = uncentred(90, 6)
KERNEL = Gaussian(gamma=0.4)
each_method = pytest.mark.parametrize("landmarks", LANDMARKS)
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def nystroem(kernel: Kernel | str = KERNEL, **parameters: Any) -> LeverageNystroem:
    return LeverageNystroem(kernel, **{"n_components": 20, "random_state": 0, **parameters})


def clustered(seed: int) -> Float64:
    """Return one large cluster and twelve of four points, far from each other."""
    generator = np.random.default_rng(seed)
    large = 0.3 * generator.normal(size=(1000, 5))
    centres = 8.0 * generator.normal(size=(12, 5))
    small = np.repeat(centres, 4, axis=0) + 0.05 * generator.normal(size=(48, 5))
    rows: Float64 = generator.permutation(np.vstack([large, small]))
    return rows


def pair_error(fitted: LeverageNystroem, rows: Float64) -> float:
    """Return ‖Z Zᵀ − K‖ / ‖K‖ over pairs of different rows."""
    Z, K = fitted.transform(rows), fitted.kernel_(rows)
    pairs = ~np.eye(len(rows), dtype=bool)
    return float(np.linalg.norm((Z @ Z.T - K)[pairs]) / np.linalg.norm(K[pairs]))


@pytest.mark.filterwarnings("ignore:n_components=.* exceeds")
@parametrize_with_checks([LeverageNystroem(), LeverageNystroem(landmarks="approximate-leverage")])
def test_scikit_learn_contract(estimator: LeverageNystroem, check: Callable[[Any], None]) -> None:
    check(estimator)


class TestApproximation:
    """Z Zᵀ is the Nyström approximation of K."""

    @each_kernel
    @each_method
    def test_is_the_projection_onto_the_landmarks(self, kernel: Kernel, landmarks: str) -> None:
        fitted = nystroem(kernel, landmarks=landmarks)
        Z = fitted.fit_transform(X)
        K, chosen = kernel(X), fitted.landmark_indices_
        inverse = np.linalg.pinv(K[np.ix_(chosen, chosen)], rcond=1e-9, hermitian=True)
        expected = K[:, chosen] @ inverse @ K[chosen]
        np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-6 * np.abs(K).max())
        np.testing.assert_array_equal(fitted.landmarks_, X[chosen])

    @each_kernel
    def test_is_never_above_the_kernel(self, kernel: Kernel) -> None:
        Z = nystroem(kernel).fit_transform(X)
        K = kernel(X)
        eigenvalues = np.linalg.eigvalsh(K - Z @ Z.T)
        assert eigenvalues.min() >= -1e-9 * np.linalg.norm(K, 2)

    @each_kernel
    @each_method
    @each_dtype
    def test_all_rows_as_landmarks_give_the_kernel(
        self, kernel: Kernel, landmarks: str, dtype: type
    ) -> None:
        rows = X.astype(dtype)
        Z = nystroem(kernel, n_components=90, landmarks=landmarks).fit_transform(rows)
        K = kernel(rows.astype(np.float64))
        tolerance = 1e-9 if dtype == np.float64 else 2e-5
        np.testing.assert_allclose(Z @ Z.T, K, atol=tolerance * K.max())

    @each_kernel
    def test_is_exact_between_landmarks_and_other_rows(self, kernel: Kernel) -> None:
        fitted = nystroem(kernel).fit(X[:50])
        new = fitted.transform(X[50:])
        at_landmarks = fitted.transform(fitted.landmarks_)
        expected = kernel(X[50:], fitted.landmarks_)
        np.testing.assert_allclose(
            new @ at_landmarks.T, expected, atol=1e-4 * np.abs(expected).max()
        )

    def test_beats_uniform_landmarks_on_clusters(self) -> None:
        # Uniform landmarks miss most of the small clusters, whatever the seed.
        missing: dict[str, list[float]] = {"leverage": [], "uniform": []}
        for seed in range(5):
            rows = clustered(seed)
            for landmarks, found in missing.items():
                Z = nystroem(
                    landmarks=landmarks, n_components=150, random_state=seed
                ).fit_transform(rows)
                found.append(len(rows) - float(np.sum(Z**2)))
        assert np.median(missing["leverage"]) < 0.1 * np.median(missing["uniform"])
        assert max(missing["leverage"]) < min(missing["uniform"])

    def test_more_landmarks_are_better(self) -> None:
        rows = digits(600) / 16
        kernel = Gaussian(gamma=0.1)
        K = kernel(rows)
        errors = [
            relative_error(nystroem(kernel, n_components=size).fit_transform(rows), K)
            for size in (20, 80, 320)
        ]
        assert errors[0] > 2 * errors[1] > 4 * errors[2]

    def test_default_kernel_is_the_scaled_gaussian(self) -> None:
        expected = Gaussian(1.0 / (6 * float(X.var())))
        kernel = nystroem("gaussian").fit(X).kernel_
        assert isinstance(kernel, Gaussian)
        assert kernel.gamma == pytest.approx(expected.gamma, rel=1e-12)

    def test_kernel_by_its_name(self) -> None:
        by_name, by_object = nystroem("poly").fit(X), nystroem(Polynomial()).fit(X)
        assert by_name.kernel_ == by_object.kernel_
        assert_same_bits(by_name.transform(X), by_object.transform(X))

    def test_kernel_parameters_are_parameters(self) -> None:
        fitted = nystroem(Gaussian(gamma=1.0)).set_params(kernel__gamma=0.25).fit(X)
        assert fitted.kernel_ == Gaussian(gamma=0.25)

    def test_constant_rows_have_a_default_kernel(self) -> None:
        Z = nystroem("gaussian").fit_transform(np.full((30, 2), 3.0))
        np.testing.assert_allclose(Z @ Z.T, np.ones((30, 30)), atol=1e-8)

    @each_method
    @each_dtype
    def test_duplicates(self, landmarks: str, dtype: type) -> None:
        rows = np.tile(X[:5], (30, 1)).astype(dtype)
        fitted = nystroem(landmarks=landmarks, n_components=60).fit(rows)
        Z = fitted.transform(rows).astype(np.float64)
        np.testing.assert_allclose(Z @ Z.T, KERNEL(rows.astype(np.float64)), atol=1e-5)

    @each_method
    def test_kernel_that_is_zero(self, landmarks: str) -> None:
        fitted = nystroem(Polynomial(degree=2), landmarks=landmarks).fit(np.zeros((40, 3)))
        np.testing.assert_array_equal(fitted.transform(np.zeros((2, 3))), np.zeros((2, 20)))

    def test_same_seed_same_features(self) -> None:
        first, again = (nystroem(random_state=3).fit_transform(X) for _ in range(2))
        assert_same_bits(first, again)
        other = nystroem(random_state=4).fit(X)
        assert other.seed_ == 4
        assert not np.array_equal(
            other.landmark_indices_, nystroem(random_state=3).fit(X).landmark_indices_
        )

    def test_alpha_is_the_ridge_of_the_scores(self) -> None:
        small, large = (nystroem(alpha=alpha).fit(X).scores_ for alpha in (1e-3, 10.0))
        assert small.min() > large.max()


class TestAttributes:
    """What `fit` stores."""

    @each_method
    def test_of_few_landmarks(self, landmarks: str) -> None:
        fitted = nystroem(landmarks=landmarks).fit(X)
        assert fitted.n_components_ == 20
        assert fitted.landmark_indices_.shape == fitted.scores_.shape == (20,)
        assert (fitted.scores_ >= 0).all()
        assert (fitted.scores_ <= 1).all()
        assert fitted.jitter_ == 1e-10
        assert fitted.kernel_ == KERNEL

    def test_of_float32_rows(self) -> None:
        fitted = nystroem().fit(X.astype(np.float32))
        assert fitted.jitter_ == 1e-6
        assert fitted.landmarks_.dtype == np.float32

    def test_more_components_than_rows(self) -> None:
        fitted = nystroem(n_components=100)
        with pytest.warns(UserWarning, match=r"n_components=100 exceeds the 90 rows of X"):
            fitted.fit(X)
        assert fitted.n_components_ == 90
        assert fitted.n_components == 100
        assert fitted.transform(X).shape == (90, 90)
        np.testing.assert_array_equal(fitted.scores_, np.ones(90))
        assert len(fitted.get_feature_names_out()) == 90

    def test_one_row_and_one_component(self) -> None:
        assert nystroem(n_components=1).fit_transform(X[:1]) == pytest.approx(1.0)
        assert nystroem(n_components=1).fit_transform(X).shape == (90, 1)

    def test_one_column(self) -> None:
        assert nystroem().fit_transform(X[:, :1]).shape == (90, 20)

    def test_jitter_given(self) -> None:
        fitted = nystroem(n_components=90, jitter=0.01).fit(X)
        assert fitted.jitter_ == 0.01
        Z, K = fitted.transform(X), KERNEL(X)
        expected = K @ np.linalg.solve(K + 0.01 * np.eye(90), K)
        np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-10)

    def test_jitter_grows_where_it_must(self) -> None:
        fitted = nystroem(n_components=60, jitter=0.0).fit(np.tile(X[:5], (30, 1)))
        assert 0.0 < fitted.jitter_ < 1e-9

    def test_names_and_frames(self) -> None:
        frame = pd.DataFrame(X, columns=list("abcdef"))
        fitted = nystroem().set_output(transform="pandas").fit(frame)
        assert list(fitted.feature_names_in_) == list("abcdef")
        assert list(fitted.transform(frame).columns[:2]) == [
            "leveragenystroem0",
            "leveragenystroem1",
        ]

    def test_clone_and_pickle(self) -> None:
        fitted = nystroem().fit(X)
        again = pickle.loads(pickle.dumps(fitted))
        assert_same_bits(again.transform(X), fitted.transform(X))
        assert clone(fitted).get_params() == fitted.get_params()


class TestAutomaticSize:
    """n_components="auto" with an error to keep."""

    @pytest.mark.parametrize("seed", range(3))
    def test_keeps_the_error_on_new_rows(self, seed: int) -> None:
        # New rows are of the same kind only if the writers of the digits are mixed.
        rows = np.random.default_rng(seed).permutation(digits(1700) / 16)
        kernel = Gaussian(gamma=0.05)
        parameters = {"n_components": "auto", "eps": 0.02, "random_state": seed}
        fitted = nystroem(kernel, **parameters).fit(rows[:1200])
        assert 0.005 < pair_error(fitted, rows[1200:]) < 0.02
        assert fitted.certificate_.frobenius.high <= 0.02
        assert fitted.n_components_ == fitted.landmark_indices_.size < 400
        np.testing.assert_array_equal(fitted.landmarks_, rows[fitted.landmark_indices_])

    def test_few_rows(self) -> None:
        fitted = nystroem(n_components="auto", eps=0.1).fit(X)
        assert 0.02 < pair_error(fitted, X) <= 0.1

    def test_certificate_goes_with_the_fit(self) -> None:
        fitted = nystroem(n_components="auto", eps=0.1).fit(X)
        assert hasattr(fitted, "certificate_")
        assert not hasattr(fitted.set_params(n_components=10, eps=None).fit(X), "certificate_")

    @pytest.mark.parametrize(
        ("parameters", "match"),
        [
            ({"n_components": "auto"}, r"n_components='auto' needs .* eps=0.05"),
            ({"eps": 0.1}, "eps=0.1 has no meaning with n_components=20"),
            ({"n_components": "auto", "eps": 1.5}, "eps=1.5"),
        ],
    )
    def test_refusals(self, parameters: dict[str, Any], match: str) -> None:
        with pytest.raises(ValueError, match=match):
            nystroem(**parameters).fit(X)


class TestInput:
    """Every kind of rows gives the same features."""

    @each_kernel
    def test_sparse(self, kernel: Kernel) -> None:
        rows = X * (X > 0.2)
        dense = nystroem(kernel).fit(rows)
        fitted = nystroem(kernel).fit(sparse.csr_array(rows))
        assert sparse.issparse(fitted.landmarks_)
        Z, expected = fitted.transform(sparse.csr_array(rows)), dense.transform(rows)
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("make", SPARSE_FORMATS, ids=lambda make: make.__name__)
    def test_sparse_formats(self, make: Callable[[Any], Any]) -> None:
        expected = nystroem().fit_transform(sparse.csr_array(X))
        assert_same_bits(nystroem().fit_transform(make(X)), expected)

    def test_sparse_with_duplicate_entries(self) -> None:
        doubled = sparse.csr_array(
            (np.tile(X[:, :1], (1, 2)).ravel(), np.zeros(180, np.int64), np.arange(0, 181, 2)),
            shape=(90, 1),
        )
        fitted = nystroem("gaussian").fit(doubled)
        dense = nystroem("gaussian").fit(2.0 * X[:, :1])
        assert fitted.kernel_.gamma == pytest.approx(dense.kernel_.gamma)
        Z, expected = fitted.transform(doubled), dense.transform(2.0 * X[:, :1])
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-7)
        assert doubled.nnz == 180

    @each_dtype
    def test_layouts(self, dtype: type) -> None:
        rows = X.astype(dtype)
        fitted = nystroem().fit(rows)
        expected = fitted.transform(rows)
        wide = np.repeat(rows, 2, axis=1)[:, ::2]
        read_only = rows.copy()
        read_only.setflags(write=False)
        for other in (np.asfortranarray(rows), wide, read_only, rows[::-1][::-1]):
            again = nystroem().fit(other)
            np.testing.assert_array_equal(again.landmark_indices_, fitted.landmark_indices_)
            np.testing.assert_allclose(again.transform(other), expected, atol=1e-4)

    @each_dtype
    def test_dtype_is_kept_and_input_left_alone(self, dtype: type) -> None:
        rows = X.astype(dtype)
        before = rows.copy()
        Z = nystroem().fit_transform(rows)
        assert Z.dtype == dtype
        assert_same_bits(rows, before)

    def test_integers_become_float64(self) -> None:
        assert nystroem().fit_transform(np.arange(60).reshape(30, 2)).dtype == np.float64

    @pytest.mark.parametrize("columns", [1, 3, 50])
    @pytest.mark.parametrize("size", [40, 400])
    def test_float32_is_accurate(self, columns: int, size: int) -> None:
        # In one column, neighbouring landmarks are nearly dependent; in 50 they are not.
        rows = np.random.default_rng(0).random((800, columns)).astype(np.float32)
        fitted = nystroem(Gaussian(gamma=6.0 / columns), n_components=size).fit(rows)
        single = fitted.transform(rows)
        double = fitted.transform(rows.astype(np.float64))
        assert single.dtype == np.float32
        assert relative_error(single, double @ double.T) < 1e-5

    def test_float32_rows_for_a_map_of_float64_rows(self) -> None:
        rows = np.linspace(0.0, 1.0, 300)[:, np.newaxis]
        fitted = nystroem(n_components=200).fit(rows)
        single = fitted.transform(rows.astype(np.float32))
        assert relative_error(single, KERNEL(rows)) < 1e-5

    def test_values_beyond_float32_where_the_features_are_not(self) -> None:
        rows, kernel = (1e8 * X).astype(np.float32), Polynomial(degree=4)
        Z = nystroem(kernel, n_components=90).fit_transform(rows)
        assert Z.dtype == np.float32
        K = kernel(rows, dtype=np.float64)
        assert K.max() > 1e60
        assert relative_error(Z, K) < 1e-4

    @each_dtype
    def test_many_blocks_and_threads(self, dtype: type) -> None:
        rows = np.random.default_rng(1).normal(size=(9000, 2)).astype(dtype)
        one, two = (nystroem(n_jobs=jobs, landmarks="uniform").fit(rows) for jobs in (None, 2))
        np.testing.assert_allclose(one.transform(rows), two.transform(rows), atol=1e-4)
        np.testing.assert_allclose(
            one.transform(rows)[8000:], one.transform(rows[8000:]), atol=1e-4
        )

    def test_memory(self) -> None:
        # The features of 30,000 rows are 48 MB in float32, kernel values in float64 twice that.
        rows = np.random.default_rng(0).normal(size=(30_000, 20)).astype(np.float32)
        fitted = nystroem(n_components=400, landmarks="uniform").fit(rows)
        tracemalloc.start()
        Z = fitted.transform(rows)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < Z.nbytes + 48e6

    def test_progress(self, capsys: pytest.CaptureFixture[str]) -> None:
        nystroem(verbose=1).fit(X).transform(X)
        assert "[LeverageNystroem] 90/90 rows (100%)" in capsys.readouterr().err
        nystroem().fit(X).transform(X)
        assert capsys.readouterr().err == ""


REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    ("kernel", "matern", ValueError, "kernel='matern' is unknown; use one of 'linear'"),
    ("kernel", np.dot, TypeError, "allowed are the kernels of powersketch.kernels"),
    ("n_components", 0, ValueError, "n_components=0 is out of range; .* at least 1"),
    ("n_components", 2.0, TypeError, "n_components=2.0 is a float"),
    ("n_components", True, TypeError, "n_components=True is a bool"),
    ("landmarks", "exact", ValueError, "landmarks='exact' is unknown; use one of 'leverage'"),
    ("landmarks", None, ValueError, "landmarks=None is unknown"),
    ("alpha", 0.0, ValueError, "alpha=0.0 is out of range; .* above 0"),
    ("alpha", -1.0, ValueError, "alpha=-1.0 is out of range"),
    ("alpha", np.nan, ValueError, "alpha=nan is out of range"),
    ("alpha", np.inf, ValueError, "alpha=inf is out of range"),
    ("alpha", "auto", TypeError, "alpha='auto' is a str"),
    ("jitter", -1e-9, ValueError, "jitter=-1e-09 is out of range; .* at least 0"),
    ("jitter", np.inf, ValueError, "jitter=inf is out of range"),
    ("jitter", "auto", TypeError, "jitter='auto' is a str"),
    ("n_jobs", 0, ValueError, "n_jobs=0 has no meaning"),
    ("n_jobs", 1.5, TypeError, "n_jobs=1.5 must be an integer"),
    ("random_state", -1, ValueError, "random_state=-1 is out of range"),
    ("random_state", "seed", TypeError, "random_state='seed' is a str"),
]


class TestRefusals:
    """Errors name the value, and leave the last fit as it was."""

    @pytest.mark.parametrize(("name", "value", "error", "match"), REFUSED)
    def test_parameters(self, name: str, value: Any, error: type[Exception], match: str) -> None:
        fitted = nystroem().fit(X)
        before = fitted.transform(X)
        fitted.set_params(**{name: value})
        with pytest.raises(error, match=match):
            fitted.fit(X + 1.0)
        assert_same_bits(nystroem().fit(X).transform(X), before)
        fitted.set_params(n_jobs=None)
        assert_same_bits(fitted.transform(X), before)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_numbers_that_are_not_finite(self, bad: float) -> None:
        rows = X.copy()
        rows[3, 2] = bad
        fitted = nystroem().fit(X)
        before = fitted.transform(X)
        for call in (fitted.fit, fitted.transform):
            with pytest.raises(ValueError, match="Input X contains"):
                call(rows)
        assert_same_bits(fitted.transform(X), before)

    def test_other_number_of_columns(self) -> None:
        with pytest.raises(ValueError, match=r"X has 5 features, but .* expecting 6"):
            nystroem().fit(X).transform(X[:, :5])

    @pytest.mark.parametrize("shape", [(0, 6), (6, 0), (6,)])
    def test_shapes(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"minimum of 1 is required|Expected 2D array"):
            nystroem().fit(np.ones(shape))

    def test_transform_before_fit(self) -> None:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            nystroem().transform(X)

    def test_overflow_leaves_the_last_fit(self) -> None:
        fitted = nystroem(Polynomial(degree=60)).fit(X)
        before = fitted.transform(X)
        with pytest.raises(ValueError, match="overflows float64"):
            fitted.fit(1e6 * X[:, :3])
        assert fitted.n_features_in_ == 6
        assert_same_bits(fitted.transform(X), before)

    def test_features_beyond_float32(self) -> None:
        fitted = nystroem(Polynomial(degree=4)).fit(1e8 * X)
        with pytest.raises(ValueError, match=r"features overflow float32: .* pass X as float64"):
            fitted.transform((1e11 * X).astype(np.float32))


class TestSameBits:
    """Of a row's features, whatever is computed beside it."""

    X = np.random.default_rng(0).normal(size=(1100, 20))

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("size", [5, 40, 300])
    def test_for_any_number_of_threads(self, dtype: Any, size: int) -> None:
        X = self.X.astype(dtype)
        maps = [
            LeverageNystroem(Gaussian(0.02), n_components=size, random_state=0, n_jobs=jobs).fit(X)
            for jobs in (None, 1, 2, 3)
        ]
        for other in maps[1:]:
            assert np.array_equal(other.landmark_indices_, maps[0].landmark_indices_)
            assert_same_bits(other.factor_, maps[0].factor_)
            assert_same_bits(other.transform(X), maps[0].transform(X))

    def test_for_any_number_of_threads_of_blas(self) -> None:
        found = []
        for count in (1, 2):
            with threadpool_limits(count, user_api="blas"):
                sketch = LeverageNystroem(Gaussian(0.02), n_components=300, random_state=0)
                found.append(sketch.fit_transform(self.X))
        assert_same_bits(*found)

    @pytest.mark.parametrize("size", [2, 33, 257])
    @pytest.mark.parametrize("compressed", [False, True])
    def test_for_any_split_and_order(self, size: int, compressed: bool) -> None:
        X: Any = sparse.csr_array(self.X) if compressed else self.X
        sketch = LeverageNystroem(Polynomial(2, coef0=1.0), n_components=size, random_state=0)
        Z = sketch.fit_transform(X)
        order = np.random.default_rng(1).permutation(1100)
        assert_same_bits(sketch.transform(X[order]), Z[order])
        for height in (1, 7, 481):
            for start in (0, 3, 600):
                part = slice(start, start + height)
                assert_same_bits(sketch.transform(X[part]), Z[part])

    def test_for_any_layout(self) -> None:
        sketch = LeverageNystroem(Gaussian(0.02), n_components=50, random_state=0)
        Z = sketch.fit_transform(self.X)
        assert_same_bits(sketch.transform(np.asfortranarray(self.X)), Z)
        assert_same_bits(sketch.transform(np.repeat(self.X, 2, axis=0)[::2]), Z)


class TestAbsurdRow:
    X = np.random.default_rng(0).normal(size=(300, 12))

    def error(self, sketch: LeverageNystroem) -> float:
        others = np.delete(self.X, 7, axis=0)
        Z, K = sketch.transform(others), sketch.kernel_(others)
        return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))

    @pytest.mark.parametrize("factor", [1e3, 1e10, 1e20])
    @pytest.mark.parametrize("landmarks", ["leverage", "uniform"])
    @pytest.mark.parametrize(
        "kernel", ["gaussian", Gaussian(0.05), Polynomial(2, coef0=1.0), NeuralTangent()], ids=str
    )
    def test_leaves_the_others_alone(self, kernel: Any, landmarks: str, factor: float) -> None:
        sketch = LeverageNystroem(kernel, n_components=60, landmarks=landmarks, random_state=0)
        expected = self.error(sketch.fit(self.X))
        X = self.X.copy()
        X[7] *= factor
        with pytest.warns(OutlierWarning, match="row 7"):
            sketch.fit(X)
        assert 0.5 * expected < self.error(sketch) <= 2.0 * expected

    def test_is_a_landmark_of_a_growing_kernel(self) -> None:
        X = self.X.copy()
        X[7] *= 1e10
        sketch = LeverageNystroem(Polynomial(2), n_components=60, random_state=0)
        with pytest.warns(OutlierWarning):
            sketch.fit(X)
        assert sketch.landmark_indices_.size == 60
        assert np.all(np.diff(sketch.landmark_indices_) > 0)
        assert sketch.scores_[list(sketch.landmark_indices_).index(7)] == 1.0
        Z = sketch.transform(X[7:8])
        assert float(Z[0] @ Z[0]) == pytest.approx(Polynomial(2)(X[7:8])[0, 0], rel=1e-6)

    def test_single_precision(self) -> None:
        X = self.X.astype(np.float32)
        sketch = LeverageNystroem(Polynomial(2), n_components=60, random_state=0)
        expected = self.error(sketch.fit(X))
        X[7] *= 1e6
        with pytest.warns(OutlierWarning):
            sketch.fit(X)
        assert self.error(sketch) <= 2.0 * expected

    def test_sparse_rows(self) -> None:
        X = sparse.csr_array(self.X)
        X[7] *= 1e10
        with pytest.warns(OutlierWarning, match="row 7"):
            LeverageNystroem(n_components=10, random_state=0).fit(X)

    def test_rows_of_another_size_are_no_outliers(self) -> None:
        X = self.X.copy()
        X[::3] *= 1e6
        LeverageNystroem(Gaussian(0.05), n_components=60, random_state=0).fit(X)


class TestRange:
    X = np.random.default_rng(0).standard_normal((300, 8))

    @pytest.mark.parametrize("kernel", [Gaussian(0.02), Gaussian(0.2), Polynomial(3, 0.1, 1.0)])
    def test_rows_unlike_the_landmarks_are_told(self, kernel: Kernel) -> None:
        sketch = LeverageNystroem(kernel, n_components=100, random_state=0).fit(self.X[:200])
        sketch.transform(self.X[200:])
        with pytest.warns(RangeWarning, match="unlike the landmarks"):
            sketch.transform(10 * self.X[200:])

    def test_the_remedy_works(self) -> None:
        kernel, new = Gaussian(0.002), 3 * self.X[200:]
        sketch = LeverageNystroem(Gaussian(0.02), n_components=100, random_state=0)
        with pytest.warns(RangeWarning, match="fit on rows like these"):
            lost = relative_error(sketch.fit(self.X[:200]).transform(new), sketch.kernel_(new))
        refitted = LeverageNystroem(kernel, n_components=100, random_state=0).fit(new)
        assert relative_error(refitted.transform(new), refitted.kernel_(new)) < lost

    def test_narrow_kernels_have_no_range(self) -> None:
        """Features that hold next to nothing of new rows hold no less of others."""
        sketch = LeverageNystroem(Gaussian(5.0), n_components=50, random_state=0).fit(self.X[:200])
        sketch.transform(100 * self.X[200:])

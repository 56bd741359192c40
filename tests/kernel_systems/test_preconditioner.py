"""Preconditioners from sketches: definite, accurate, and the same for every layout of the rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from powersketch import GaussianSketch, PolynomialSketch, SketchPreconditioner
from powersketch.exceptions import InputError
from powersketch.kernel_systems import default_rank
from powersketch.kernel_systems.approximations import bytes_of_nystroem
from powersketch.kernels import Gaussian, Kernel, Polynomial
from powersketch.linalg import KernelOperator, conjugate_gradients
from tests.kernel_systems.systems import (
    ALPHA,
    KERNELS,
    dense,
    long_rows,
    short_rows,
    sparse_rows,
    targets,
)

WAYS = {
    "sketched-data": {"strategy": "sketched-data"},
    "features": {"strategy": "features"},
    "few features": {"strategy": "features", "n_components": 60},
    "leverage": {"strategy": "nystroem"},
    "uniform": {"strategy": "nystroem", "landmarks": "uniform"},
    "range-finder": {"strategy": "nystroem", "landmarks": "range-finder"},
}


def built(
    X: Any, kernel: Kernel = KERNELS["gaussian"], alpha: float = ALPHA, **options: Any
) -> Any:
    return SketchPreconditioner(X, kernel, alpha, random_state=0, **options)


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("X", [long_rows(), sparse_rows()], ids=["dense", "csr"])
def test_is_symmetric_positive_definite(X: Any, way: str) -> None:
    M = built(X, **WAYS[way])
    matrix = dense(M)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0] > 0.0
    np.testing.assert_allclose(M @ np.ones(120), matrix.sum(axis=1), rtol=1e-8)
    np.testing.assert_array_equal(M.T @ np.ones(120), M @ np.ones(120))
    np.testing.assert_array_equal(M.H @ np.ones(120), M @ np.ones(120))


@pytest.mark.parametrize("name", list(KERNELS))
def test_sketched_data_solves_in_few_steps(name: str) -> None:
    X, kernel = long_rows(), KERNELS[name]
    M = built(X, kernel, 0.0, strategy="sketched-data")
    result = conjugate_gradients(
        KernelOperator(kernel, X), targets(120), preconditioner=M, tol=1e-8
    )
    assert result.converged
    assert result.iterations <= 40


@pytest.mark.parametrize("way", ["leverage", "uniform", "range-finder"])
def test_nystroem_saves_most_steps_for_decaying_spectra(way: str) -> None:
    X, kernel = short_rows(), Gaussian(gamma=0.1)
    operator, y = KernelOperator(kernel, X, ALPHA), targets(400)
    M = built(X, kernel, **WAYS[way], n_components=100)
    with_it, without = (
        conjugate_gradients(operator, y, preconditioner=preconditioner, tol=1e-8).iterations
        for preconditioner in (M, None)
    )
    assert with_it < 0.25 * without


def test_nystroem_of_full_rank_is_nearly_the_inverse() -> None:
    X = short_rows(60)
    for way in ("leverage", "range-finder"):
        M = built(X, alpha=0.0, **WAYS[way], n_components=60)
        assert M.n_components_ == 60
        # The nugget adds the smallest eigenvalue to all, which halves the inverse at most.
        values = np.linalg.eigvals(dense(M) @ KERNELS["gaussian"](X)).real
        assert values.min() > 0.45
        assert values.max() < 1.05


def test_features_are_the_inverse_of_their_product() -> None:
    X, kernel = long_rows(30, 40), Polynomial(degree=2, coef0=1.0)
    sketch = PolynomialSketch(2, coef0=1.0, n_components=200, random_state=5)
    given = repr(sketch)
    M = built(X, kernel, strategy="features", map=sketch)
    Z = PolynomialSketch(2, coef0=1.0, n_components=200, random_state=5).fit_transform(X)
    # S keeps three quarters of the features, so that eigenvalues are near one, not one.
    values = np.linalg.eigvals(dense(M) @ (Z @ Z.T + ALPHA * np.eye(30))).real
    assert 0.3 < values.min() < values.max() < 3.0
    assert M.n_components_ == 200
    assert repr(sketch) == given
    assert not hasattr(sketch, "kernel_")


def test_fewer_features_than_rows_are_inverted_exactly() -> None:
    X, kernel = long_rows(30, 40), Polynomial(degree=2, coef0=1.0)
    sketch = PolynomialSketch(2, coef0=1.0, random_state=5)
    M = built(X, kernel, strategy="features", map=sketch, n_components=20)
    Z = PolynomialSketch(2, coef0=1.0, n_components=20, random_state=5).fit_transform(X)
    expected = np.linalg.inv(Z @ Z.T + M.nugget_ * np.eye(30))
    np.testing.assert_allclose(dense(M), expected, rtol=1e-6, atol=1e-9)
    assert M.nugget_ == pytest.approx(ALPHA + np.linalg.eigvalsh(Z.T @ Z)[0], rel=0.01)


def test_without_compression_it_is_the_inverse() -> None:
    X = short_rows(50)
    M = built(X)
    assert (M.strategy_, M.n_components_, M.nugget_) == ("sketched-data", 5, ALPHA)
    expected = np.linalg.inv(KERNELS["gaussian"](X) + ALPHA * np.eye(50))
    np.testing.assert_allclose(dense(M), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("X", "size"),
    [
        (long_rows(), 360),
        (long_rows(120, 360), 360),
        (sparse_rows(), 3000),
        (sparse_rows(20, 3000, density=0.1), 60),
    ],
    ids=["longer", "as long", "short sparse", "long sparse"],
)
def test_default_coordinates(X: Any, size: int) -> None:
    assert built(X).n_components_ == size


def test_auto_takes_nystroem_for_many_short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(short_rows(200)).strategy_ == "sketched-data"
    monkeypatch.setattr("powersketch.kernel_systems.preconditioner._FEW_ROWS", 100)
    assert built(short_rows(200)).strategy_ == "nystroem"
    assert built(short_rows(100)).strategy_ == "sketched-data"
    assert built(long_rows(120, 240)).strategy_ == "sketched-data"
    assert built(long_rows(120, 239)).strategy_ == "nystroem"
    # What counts of sparse rows is how many entries they have.
    assert built(sparse_rows()).strategy_ == "nystroem"
    monkeypatch.setattr("powersketch.kernel_systems.preconditioner._MANY_ROWS", 119)
    assert built(long_rows(120, 240)).strategy_ == "nystroem"


def test_default_rank() -> None:
    assert built(short_rows(50), strategy="nystroem").n_components_ == 50
    assert built(short_rows(400), strategy="nystroem").n_components_ == 100
    assert built(short_rows(900), strategy="nystroem").n_components_ == 100


@pytest.mark.parametrize("rows", [9000, 60_000, 100_000])
def test_default_rank_in_little_memory(rows: int) -> None:
    assert default_rank(rows, 1e3) == 100
    ranks = [default_rank(rows, memory) for memory in (5e8, 1e9, 2e9, 4e9, 8e9)]
    assert ranks == sorted(ranks)
    assert ranks[-1] == default_rank(rows)
    assert bytes_of_nystroem(rows, ranks[0]) <= 5e8


@pytest.mark.parametrize("way", list(WAYS))
def test_seed_decides(way: str) -> None:
    X = long_rows()
    first, again = built(X, **WAYS[way]), built(X, **WAYS[way])
    assert first.seed_ == 0
    np.testing.assert_array_equal(first @ np.ones(120), again @ np.ones(120))
    other = SketchPreconditioner(X, KERNELS["gaussian"], ALPHA, random_state=1, **WAYS[way])
    assert not np.allclose(first @ np.ones(120), other @ np.ones(120), rtol=1e-6)
    drawn = SketchPreconditioner(X, KERNELS["gaussian"], ALPHA, **WAYS[way])
    replayed = SketchPreconditioner(
        X, KERNELS["gaussian"], ALPHA, random_state=drawn.seed_, **WAYS[way]
    )
    np.testing.assert_array_equal(drawn @ np.ones(120), replayed @ np.ones(120))


@pytest.mark.parametrize("way", list(WAYS))
def test_layout_of_the_rows_does_not_matter(way: str) -> None:
    X = long_rows()
    expected = built(X, **WAYS[way]) @ np.ones(120)
    read_only = X.copy()
    read_only.flags.writeable = False
    for layout in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist(), read_only):
        np.testing.assert_allclose(built(layout, **WAYS[way]) @ np.ones(120), expected, rtol=1e-7)


@pytest.mark.parametrize("way", list(WAYS))
def test_kind_of_sparse_rows_does_not_matter(way: str) -> None:
    X = sparse_rows()
    before = X.copy()
    expected = built(X, **WAYS[way]) @ np.ones(120)
    halves = sp.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    for kind in (X.tocsc(), X.tocoo(), sp.csr_matrix(X), halves):
        np.testing.assert_allclose(built(kind, **WAYS[way]) @ np.ones(120), expected, rtol=1e-7)
    assert not halves.has_canonical_format
    np.testing.assert_array_equal(X.toarray(), before.toarray())


@pytest.mark.parametrize("way", list(WAYS))
def test_number_of_threads_does_not_matter(way: str) -> None:
    X = long_rows()
    expected = built(X, **WAYS[way]) @ np.ones(120)
    np.testing.assert_allclose(built(X, **WAYS[way], n_jobs=2) @ np.ones(120), expected, rtol=1e-7)


@pytest.mark.parametrize("way", list(WAYS))
def test_float32_rows_precondition_a_float64_system(way: str) -> None:
    X = long_rows(dtype=np.float32)
    kernel = KERNELS["gaussian"]
    M = built(X, **WAYS[way])
    result = conjugate_gradients(
        KernelOperator(kernel, X, ALPHA), targets(120), preconditioner=M, tol=1e-9
    )
    assert result.converged
    assert (M @ np.ones(120)).dtype == np.float64


def test_float32_rows_have_a_float32_factor() -> None:
    assert "float32" in built(long_rows(dtype=np.float32)).describe()
    assert "float64" in built(long_rows()).describe()


@pytest.mark.parametrize("way", list(WAYS))
def test_scipys_solver_takes_it_and_it_survives_a_pickle(way: str) -> None:
    X, kernel = long_rows(), KERNELS["gaussian"]
    K = kernel(X) + ALPHA * np.eye(120)
    M = pickle.loads(pickle.dumps(built(X, **WAYS[way])))
    x, info = cg(K, np.ones(120), rtol=1e-8, maxiter=120, M=M)
    assert info == 0
    np.testing.assert_allclose(K @ x, 1.0, atol=1e-6)


def test_root_times_its_transpose_is_the_inverse() -> None:
    X = long_rows()
    for way in ("sketched-data", "features"):
        M = built(X, **WAYS[way])
        R = dense(M.root())
        np.testing.assert_allclose(R @ R.T, dense(M), rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="at least 120 features"):
        built(X, **WAYS["few features"]).root()


@pytest.mark.parametrize("way", list(WAYS))
def test_one_row_and_one_column(way: str) -> None:
    kernel, size = Polynomial(degree=2, coef0=1.0), {"n_components": 1}
    one = built([[2.0]], kernel, 1.0, **WAYS[way] | size)
    assert one @ np.array([26.0]) == pytest.approx([1.0], rel=0.6)
    column = built(np.linspace(-1.0, 1.0, 9)[:, None], kernel, 1.0, **WAYS[way])
    assert np.linalg.eigvalsh(dense(column))[0] > 0.0


@pytest.mark.parametrize("way", list(WAYS))
def test_zero_and_equal_rows(way: str) -> None:
    X = np.vstack((np.zeros((2, 30)), np.repeat(long_rows(40, 30), 2, axis=0)))
    for alpha in (1e-2, 0.0):
        options = WAYS[way]
        if way == "features" and alpha == 0.0:
            with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
                built(X, alpha=alpha, **options)
            continue
        image = built(X, alpha=alpha, **options) @ np.ones(82)
        assert np.isfinite(image).all()


def test_kernel_matrix_of_zeros() -> None:
    for way in ("sketched-data", "leverage"):
        M = built(np.zeros((4, 3)), Polynomial(degree=2), 2.0, **WAYS[way])
        np.testing.assert_allclose(M @ np.ones(4), 0.5)
    for options in WAYS.values():
        with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
            built(np.zeros((4, 3)), Polynomial(degree=2), 0.0, **options)


def test_only_as_many_features_as_rows_take_no_nugget() -> None:
    # 70 different rows, but no more than six quadratic monomials.
    X, kernel = short_rows(70, 3), Polynomial(degree=2)
    for way, options in WAYS.items():
        if way == "features":
            with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
                built(X, kernel, 0.0, **options)
        else:
            assert built(X, kernel, 0.0, **options).nugget_ > 0.0
    assert built(X, kernel, 0.0, strategy="features", n_components=5).nugget_ > 0.0


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    built(long_rows(), verbose=1)
    assert "sketched-data" in capsys.readouterr().err
    built(long_rows())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"strategy": "magic"}, ValueError, "'sketched-data', 'features', 'nystroem'"),
        ({"landmarks": "magic"}, ValueError, "'leverage', 'approximate-leverage', 'uniform'"),
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"n_components": 1.5}, TypeError, "n_components=1.5"),
        ({"alpha": -1.0}, ValueError, "alpha=-1"),
        ({"alpha": np.nan}, ValueError, "alpha=nan"),
        ({"kernel": "matern"}, ValueError, "kernel='matern'"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
        ({"X": [[np.nan]]}, ValueError, "NaN"),
        ({"X": [[np.inf]]}, ValueError, "infinity"),
        ({"X": np.empty((0, 3))}, ValueError, "0 sample"),
        ({"X": [1.0, 2.0]}, ValueError, "2D"),
    ],
)
def test_bad_parameters_are_refused(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = {"X": long_rows(), "kernel": Gaussian()} | options
    with pytest.raises(error, match=text):
        SketchPreconditioner(given.pop("X"), given.pop("kernel"), **given)


@pytest.mark.parametrize("landmarks", ["uniform", "range-finder"])
def test_columns_can_come_from_the_matrix(landmarks: str) -> None:
    X, kernel = short_rows(80), KERNELS["gaussian"]
    options = {"strategy": "nystroem", "landmarks": landmarks, "n_components": 20}
    computed = SketchPreconditioner(X, kernel, ALPHA, random_state=0, **options)
    given = SketchPreconditioner(X, kernel, ALPHA, matrix=kernel(X), random_state=0, **options)
    V = targets(80, 3)
    np.testing.assert_allclose(given @ V, computed @ V, rtol=1e-7)
    with pytest.raises(ValueError, match=r"matrix has shape \(3, 3\); allowed is \(80, 80\)"):
        SketchPreconditioner(X, kernel, matrix=np.eye(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"landmarks": "uniform"}, "landmarks='uniform' has no effect with the strategy 'sketched"),
        ({"strategy": "features", "matrix": np.eye(120)}, "matrix=.* has no effect"),
        ({"map": GaussianSketch()}, "map=.* has no effect"),
        ({"strategy": "nystroem", "map": GaussianSketch()}, "map=.* has no effect"),
    ],
)
def test_a_preconditioner_refuses_what_it_does_not_use(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        built(long_rows(), **options)


def test_a_given_map_takes_the_seed_unless_it_has_its_own() -> None:
    def products(seed: int, own: int | None) -> Any:
        map = GaussianSketch(0.5, n_components=130, random_state=own)
        options: dict[str, Any] = {"strategy": "features", "map": map, "random_state": seed}
        return SketchPreconditioner(long_rows(), Gaussian(0.5), 0.1, **options) @ targets(120)

    np.testing.assert_array_equal(products(1, None), products(1, None))
    assert not np.array_equal(products(1, None), products(1, 7))


def test_landmarks_beyond_the_rows_are_reported() -> None:
    with pytest.warns(UserWarning, match="n_components=99 exceeds the 60 rows") as caught:
        M = SketchPreconditioner(short_rows(60), Gaussian(), strategy="nystroem", n_components=99)
    assert M.n_components_ == 60
    assert [warning.filename for warning in caught] == [__file__]

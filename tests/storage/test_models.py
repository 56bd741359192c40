"""Saved models come back as they were, or are refused by name."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import powersketch
from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    LearnedMetric,
    LeverageNystroem,
    NeuralTangentSketch,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
    TablePreparation,
    kernels,
    load,
    save,
)
from powersketch.exceptions import InputError, InputTypeError
from powersketch.random_streams import RandomStreams
from powersketch.storage import describe
from tests.storage import golden_models

MAPS = [
    PolynomialSketch(3),
    PolynomialSketch(2, n_components=64),
    PolynomialSketch(4, coef0=1.0, expansion="mean"),
    PolynomialSketch(4, coef0=1.0, expansion="none"),
    PolynomialSketch(1, n_components=3, expansion="none"),
    PolynomialSketch(3, compress_from=200),
    *(
        PolynomialSketch(5, method=name, n_components=8)
        for name in ("tree", "tensorsketch", "ctr", "adaptive")
    ),
    *(
        PolynomialSketch(5, base_sketch=name, n_components=8, internal_components=8)
        for name in ("srht", "countsketch", "osnap", "gaussian", "rademacher")
    ),
    *(
        PolynomialSketch(5, method="ctr", base_sketch=name, n_components=8)
        for name in ("osnap", "gaussian", "rademacher")
    ),
    GaussianSketch(gamma="scale"),
    GaussianSketch(0.1, method="fourier"),
    GaussianSketch(0.1, n_components="auto", eps=0.4),
    ArcCosineSketch(),
    ArcCosineSketch(2, 2),
    ArcCosineSketch(method="random", depth=3),
    NeuralTangentSketch(),
    NeuralTangentSketch(3, bias_variance=0.1),
    NeuralTangentSketch(method="random"),
    DotProductSketch(gamma=0.1),
    DotProductSketch([1.0, 2.0, 0.3]),
    DotProductSketch("inverse", gamma=0.01, tail="fit"),
    DotProductSketch(gamma=0.1, tail="sample"),
    LeverageNystroem(),
    LeverageNystroem(kernels.Polynomial(3, coef0=1.0), landmarks="uniform"),
    LearnedMetric(),
]
RIDGE = [
    {},
    {"kernel": "rbf", "features": "sketch", "n_components": 50},
    {"features": "landmarks", "n_components": 40},
    {"scaling": "ranks"},
    {"kernel": "rbf", "features": "exact", "alpha": 1.0},
    {"kernel": "rbf", "features": "row-sketch", "alpha": 1.0},
    {"features": GaussianSketch(0.1, n_components=30)},
    {"kernel": kernels.Polynomial(3, coef0=1.0)},
]


def rows(kind: str = "dense") -> Any:
    X = np.random.default_rng(0).standard_normal((120, 17))
    X[:, 0] += 2.0
    X[:, 16] = np.exp(X[:, 16]) / 2  # skewed
    if kind == "sparse":
        return sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    return X.astype(np.float32) if kind == "single" else X


def targets() -> np.ndarray:
    X = rows()
    return np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2]


def saved(model: Any, folder: Path, **options: Any) -> Path:
    path = folder / "a.model"
    save(model, path, **options)
    return path


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def short(model: Any) -> str:
    return "".join(str(model).split())


@pytest.mark.parametrize("kind", ["dense", "sparse", "single"])
@pytest.mark.parametrize("sketch", MAPS, ids=short)
def test_maps_have_the_same_bits(sketch: Any, kind: str, tmp_path: Path) -> None:
    X = rows(kind)
    sketch = sklearn.clone(sketch).set_params(random_state=0).fit(X, targets())
    expected = sketch.transform(X)
    path = saved(sketch, tmp_path)
    again = load(path)
    assert_same(again.transform(X), expected)
    assert repr(again) == repr(sketch)
    assert again.n_features_in_ == 17
    # What was loaded is stored as the same bytes.
    assert saved(again, tmp_path / "..").read_bytes() == path.read_bytes()
    (tmp_path / ".." / "a.model").unlink()


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("options", RIDGE, ids=str)
def test_ridge_models_predict_the_same(
    options: dict[str, Any], compact: bool, tmp_path: Path
) -> None:
    X, y = rows(), targets()
    model = SketchedKernelRidge(random_state=0, **options).fit(X, y)
    again = load(saved(model, tmp_path, compact=compact))
    assert_same(again.predict(X), model.predict(X))
    assert again.alpha_ == model.alpha_
    assert str(getattr(again, "choice_", "")) == str(getattr(model, "choice_", ""))


@pytest.mark.parametrize(
    "options", [o for o in RIDGE if o.get("features") != "row-sketch"], ids=str
)
def test_classifiers_predict_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    X, labels = rows(), np.array(["a", "b", "c"])[np.digitize(targets(), [-0.5, 0.5])]
    model = SketchedKernelRidgeClassifier(random_state=0, **options | {"alpha": "loo"})
    model.fit(X, labels)
    again = load(saved(model, tmp_path))
    assert_same(again.predict_proba(X), model.predict_proba(X))
    assert_same(again.predict(X), model.predict(X))


def test_all_sums_are_kept_where_asked_for(tmp_path: Path) -> None:
    X, y = rows(), targets()
    model = SketchedKernelRidge("rbf", features="sketch", n_components=60, random_state=0).fit(X, y)
    full = load(saved(model, tmp_path, compact=False))
    for found, expected in zip(
        full.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        assert_same(found, expected)
    assert_same(full.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))
    small = load(saved(model, tmp_path))
    with pytest.raises(AttributeError, match=r"statistics_.*compact=False"):
        small.predict(X, return_std=True)
    with pytest.raises(AttributeError, match=r"statistics_.*compact=False"):
        small.partial_fit(X, y)


def test_blocks_of_rows_are_solved_for_before_saving(tmp_path: Path) -> None:
    X, y = rows(), targets()
    model = SketchedKernelRidge("rbf", features="landmarks", n_components=30, random_state=0)
    model.partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert_same(load(saved(model, tmp_path)).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), PolynomialSketch(4), RidgeClassifier()),
        make_pipeline(RobustScaler(), GaussianSketch(0.1), LogisticRegression()),
        make_pipeline(
            QuantileTransformer(n_quantiles=20), PowerTransformer(), MinMaxScaler(), Normalizer(),
            DotProductSketch(), Ridge(),
        ),
    ],
    ids=short,
)  # fmt: skip
def test_pipelines_predict_the_same(model: Any, tmp_path: Path) -> None:
    X, labels = rows(), (targets() > 0).astype(int)
    model = sklearn.clone(model).fit(X, labels)
    again = load(saved(model, tmp_path))
    assert_same(again.predict(X), model.predict(X))
    assert_same(again[-1].coef_, model[-1].coef_)


def test_tables_are_prepared_alike(tmp_path: Path) -> None:
    table = golden_models.table()
    table["shop"] = [f"shop {k % 40}" for k in range(60)]
    options = {"max_categories": 10, "dates": {"day": None}}
    for many in ("frequency", "hash"):
        preparation = TablePreparation(many_categories=many, **options).fit(table)
        again = load(saved(preparation, tmp_path))
        assert_same(again.transform(table), preparation.transform(table))
        assert again.recipe_ == preparation.recipe_
        assert [*again.get_feature_names_out()] == [*preparation.get_feature_names_out()]


@pytest.mark.parametrize("name", golden_models.MODELS)
def test_files_of_earlier_versions_are_read(name: str) -> None:
    result = golden_models.MODELS[name][1]
    model = load(golden_models.FOLDER / f"{name}.model")
    expected = np.load(golden_models.FOLDER / f"{name}.npy")
    if name in ("polynomial", "tangent"):
        assert_same(result(model), expected)
    else:  # products by BLAS differ between machines in the last bits
        np.testing.assert_allclose(result(model), expected, rtol=1e-9, atol=1e-12)


def test_sizes(tmp_path: Path) -> None:
    X = sparse.random_array((50, 50_000), density=0.001, random_state=0, format="csr")
    for sketch in (
        PolynomialSketch(8, n_components=4096, expansion="none", random_state=0),
        PolynomialSketch(4, coef0=1.0, n_components=4096, expansion="none", random_state=0),
        GaussianSketch(method="fourier", n_components=4096, random_state=0),
    ):
        path = saved(sketch.fit(X if "Poly" in str(sketch) else rows()), tmp_path)
        assert path.stat().st_size < 64_000
    model = SketchedKernelRidge("rbf", features="sketch", n_components=3000, random_state=0)
    assert saved(model.fit(rows(), targets()), tmp_path).stat().st_size < 1_000_000


LARGE = [
    PolynomialSketch(8, method="tree", expansion="none", random_state=0),
    PolynomialSketch(2, n_components=64, base_sketch="gaussian", expansion="none", random_state=0),
]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("sketch", LARGE, ids=short)
def test_large_tables_are_drawn_when_they_are_needed(
    sketch: Any, kind: str, tmp_path: Path
) -> None:
    """A file of a kilobyte stands for megabytes, which loading it does not take."""
    X: Any = sparse.random_array((5, 100_000), density=0.001, random_state=0, format="csr")
    X = X.toarray() if kind == "dense" else X
    sketch = sklearn.clone(sketch).fit(X)
    path = saved(sketch, tmp_path)
    assert path.stat().st_size < 64_000
    tracemalloc.start()
    again = load(path)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert vars(again)["_row_map"].is_postponed
    unpickled = pickle.loads(pickle.dumps(again))
    assert saved(again, tmp_path / "..").read_bytes() == path.read_bytes()
    (tmp_path / ".." / "a.model").unlink()
    for each in (again, unpickled):
        assert_same(each.transform(X), sketch.transform(X))


def test_tables_that_are_not_those_saved_are_refused(tmp_path: Path) -> None:
    """Were a later version to draw other tables, it would say so."""
    genuine = RandomStreams.signs
    for columns in (10, 100_000):
        X = np.random.default_rng(0).standard_normal((5, columns))
        sketch = PolynomialSketch(8, method="tree", expansion="none", random_state=0).fit(X)
        path = saved(sketch, tmp_path)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(RandomStreams, "signs", lambda *a, **k: -genuine(*a, **k))
            with pytest.raises(InputError, match=r"a\.model cannot be loaded.*not the one that"):
                load(path).transform(X)


# The target is one of the columns, which a linear model would find out.
@pytest.mark.filterwarnings("ignore:the best score is that of alpha:UserWarning")
@pytest.mark.filterwarnings("ignore:a straight line predicts better:UserWarning")
def test_a_file_says_what_it_holds(tmp_path: Path) -> None:
    model = make_pipeline(
        TablePreparation(), SketchedKernelRidge("rbf", features="sketch", random_state=5)
    )
    path = saved(model.fit(golden_models.table(), golden_models.rows()[:, 1]), tmp_path)
    found = json.loads(json.dumps(describe(path)))
    assert found["class"] == "Pipeline"
    assert found["powersketch"] == powersketch.__version__
    assert found["bytes"] == path.stat().st_size
    table, ridge = found["steps"].values()
    assert table["columns"] == ["size", "colour", "day", "width"]
    assert table["recipe"][3] == "width: a number"
    assert ridge["parameters"] == {"kernel": "rbf", "features": "sketch", "random_state": 5}
    assert ridge["kernel"].startswith("Gaussian(gamma=")
    assert ridge["alpha"] > 0


def test_random_states_are_kept(tmp_path: Path) -> None:
    sketch = PolynomialSketch(3, random_state=np.random.RandomState(7)).fit(rows())
    again = load(saved(sketch, tmp_path))
    assert again.random_state.randint(1 << 30) == sketch.random_state.randint(1 << 30)


def test_functions_are_refused_with_the_remedy(tmp_path: Path) -> None:
    sketch = DotProductSketch(lambda t: np.exp(0.1 * t), random_state=0).fit(rows())
    with pytest.raises(InputTypeError, match=r"Sketch\.series is a function.*coefficient"):
        saved(sketch, tmp_path)
    coefficients = sketch.kernel_.power_series(40.0).coefficients(40)
    saved(DotProductSketch(coefficients, random_state=0).fit(rows()), tmp_path)
    with pytest.raises(InputTypeError, match=r"steps\[0\]\[1\]\.func is a function"):
        saved(make_pipeline(FunctionTransformer(np.sin), Ridge()).fit(rows(), targets()), tmp_path)


class OwnKernel(kernels.Gaussian):
    """A kernel that a file cannot name."""


def test_other_classes_are_refused_by_place(tmp_path: Path) -> None:
    with pytest.raises(InputTypeError, match=r"steps\[1\]\[1\] is a KMeans.*allowed are pipelines"):
        saved(make_pipeline(StandardScaler(), KMeans(2, n_init=1)).fit(rows()), tmp_path)
    with pytest.raises(InputTypeError, match=r"LeverageNystroem\.kernel is a OwnKernel"):
        saved(LeverageNystroem(OwnKernel(0.1)).fit(rows()), tmp_path)
    with pytest.raises(InputTypeError, match="model is a int; allowed is a fitted estimator"):
        saved(3, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_models_that_are_not_fitted_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        saved(PolynomialSketch(), tmp_path)


def test_bad_paths_are_refused(tmp_path: Path) -> None:
    sketch = PolynomialSketch().fit(rows())
    with pytest.raises(InputError, match="is a folder"):
        save(sketch, tmp_path)
    with pytest.raises(InputError, match="nothing can be written to"):
        save(sketch, tmp_path / "missing" / "a.model")
    with pytest.raises(InputError, match="is not a file; give the path of a model"):
        load(tmp_path / "missing.model")


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", rows())
    with pytest.raises(InputError, match=r"a\.npy cannot be loaded as a model: it is no model"):
        load(tmp_path / "a.npy")


def test_one_changed_bit_is_refused(tmp_path: Path) -> None:
    path = saved(PolynomialSketch(random_state=0).fit(rows()), tmp_path)
    content = path.read_bytes()
    for place in (20, 40, 100, len(content) - 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(InputError, match=r"a\.model cannot be loaded.*checksum is wrong"):
            load(path)


def test_no_pickle_is_loaded_on_the_way(tmp_path: Path) -> None:
    path = saved(make_pipeline(StandardScaler(), Ridge()).fit(rows(), targets()), tmp_path)
    forbid = "import pickle, powersketch; pickle.loads = pickle.load = pickle.Unpickler = None"
    script = f"{forbid}; powersketch.load({str(path)!r})"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_choice_among_measured_maps_is_stored(tmp_path: Path) -> None:
    """Of many rows, feature maps are measured before one is taken, and the choice lists them."""
    X = np.random.default_rng(0).normal(size=(600, 3))
    model = powersketch.SketchedKernelRidge(
        "gaussian", n_components=16, alpha=1.0, time_budget=None, random_state=0
    ).fit(X, X[:, 0])
    assert model.choice_.candidates
    powersketch.save(model, tmp_path / "a.model")
    assert powersketch.load(tmp_path / "a.model").choice_ == model.choice_

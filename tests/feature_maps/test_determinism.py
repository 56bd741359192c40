"""A seed means the same bits for ever: on any threads, batches, instruction set and refit."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch import PolynomialSketch, _native
from powersketch.feature_maps import batches
from tests.feature_maps.maps import (
    CASES,
    Case,
    assert_same_bits,
    each_case,
    each_float,
    uncentred,
)

each_container = pytest.mark.parametrize("container", [np.asarray, sp.csr_array])

GOLDEN_ROWS = np.array([[1.0, 0.5, -0.25, 0.0, 2.0], [0.5, 0.75, 1.0, 1.25, 0.0]])
GOLDEN_SEED = 42
GOLDEN_PARAMETERS: dict[str, dict[str, Any]] = {
    "exact": {"degree": 1, "coef0": 2.25, "n_components": 7},
    "none": {"degree": 5, "n_components": 4, "expansion": "none"},
    "none by osnap": {
        "degree": 2,
        "coef0": 0.5,
        "n_components": 4,
        "expansion": "none",
        "base_sketch": "osnap",
    },
    "mean": {"degree": 3, "n_components": 8, "expansion": "mean"},
    "mean with coef0": {"degree": 2, "coef0": 1.0, "n_components": 7, "expansion": "mean"},
    "literal": {"degree": 3, "n_components": 4, "norm_preserving": False},
}
GOLDEN: dict[str, list[list[float]]] = {
    "exact": [[1.0, 0.5, -0.25, 0.0, 2.0, 1.5, 0.0], [0.5, 0.75, 1.0, 1.25, 0.0, 1.5, 0.0]],
    "none": [
        [-4.797085803764079, -49.32106548254825, 41.94467375951956, -4.070431980462794],
        [16.042511461526598, 9.374474912725812, -9.62550687691596, 0.023534246642826665],
    ],
    "none by osnap": [
        [-3.4274820060914535, 1.8745521545285726, -0.8568705015228634, 4.217742347689288],
        [-1.0587674126460425, 1.4314428942981607, -3.1763022379381276, 1.3254100873131116],
    ],
    "mean": [
        [
            6.80780694227083,
            4.409366264587191,
            -4.090720655622883,
            -5.74423300484308,
            1.207330372497269,
            -5.021506048177531,
            1.508762302887352,
            -2.3375999457765206,
        ],
        [
            2.206868121823914,
            -2.121724328961531,
            1.96839659425142,
            2.7640432176119942,
            0.862347956873995,
            -3.5866615962948365,
            1.0776487686731764,
            -1.669654456766097,
        ],
    ],
    "mean with coef0": [
        [
            4.520459641255607,
            2.394419517941269,
            -1.7944063905730985,
            -2.6923137098010743,
            0.9112949488078952,
            -1.39592538024643,
            0.6575275632472066,
        ],
        [
            2.582959641255605,
            -1.8099549111997,
            1.3564016810631299,
            2.0351347727630174,
            0.9112949488078959,
            -1.3959253802464315,
            0.6575275632472068,
        ],
    ],
    "literal": [
        [3.6328125000000004, 12.632812500000002, 1.9921875000000009, -0.5703125],
        [5.312499999999999, 5.312499999999999, -1.3125, -4.312499999999999],
    ],
}


def golden_features(name: str) -> NDArray[Any]:
    sketch = PolynomialSketch(**GOLDEN_PARAMETERS[name], random_state=GOLDEN_SEED)
    features: NDArray[Any] = sketch.fit_transform(GOLDEN_ROWS)
    return features


def digest() -> str:
    """Return a hash of the dense float64 features of every case."""
    features = [case.sketch().fit_transform(case.rows()) for case in CASES.values()]
    return hashlib.sha256(b"".join(Z.tobytes() for Z in features)).hexdigest()


class TestSeeds:
    @pytest.mark.parametrize("name", GOLDEN_PARAMETERS)
    def test_fixed_numbers(self, name: str) -> None:
        np.testing.assert_allclose(golden_features(name), GOLDEN[name], rtol=1e-12)

    @each_case
    @each_float
    def test_refit_gives_the_same_bits(self, case: Case, dtype: Any) -> None:
        X, sketch = case.rows(dtype=dtype), case.sketch()
        first = sketch.fit_transform(X)
        sketch.fit(case.rows(11, seed=9))
        assert_same_bits(sketch.fit_transform(X), first)

    @pytest.mark.parametrize("name", [name for name in CASES if name != "exact"])
    def test_other_seeds_give_other_features(self, name: str) -> None:
        X = CASES[name].rows()
        Z = [CASES[name].sketch(random_state=seed).fit_transform(X) for seed in (1, 2)]
        assert np.abs(Z[0] - Z[1]).max() > 0.01 * np.abs(Z[0]).max()

    def test_random_state_instance_is_advanced(self) -> None:
        X, state = uncentred(20, 30), np.random.RandomState(3)
        sketch = PolynomialSketch(random_state=state)
        seeds = [sketch.fit(X).seed_ for _ in range(3)]
        assert len(set(seeds)) == 3
        again = np.random.RandomState(3)
        assert [PolynomialSketch(random_state=again).fit(X).seed_ for _ in range(3)] == seeds

    def test_transform_draws_nothing(self) -> None:
        X, state = uncentred(20, 30), np.random.RandomState(3)
        sketch = PolynomialSketch(random_state=state).fit(X)
        before = state.get_state()[2]
        assert_same_bits(sketch.transform(X), sketch.transform(X))
        assert state.get_state()[2] == before

    def test_no_seed_gives_a_new_one_each_time(self) -> None:
        X = uncentred(20, 30)
        assert PolynomialSketch().fit(X).seed_ != PolynomialSketch().fit(X).seed_

    def test_seed_can_be_given_back(self) -> None:
        X = uncentred(20, 30)
        sketch = PolynomialSketch(3)
        Z = sketch.fit_transform(X)
        assert_same_bits(PolynomialSketch(3, random_state=sketch.seed_).fit_transform(X), Z)

    def test_global_random_state_is_left_alone(self) -> None:
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        PolynomialSketch().fit_transform(uncentred(20, 30))
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


class TestThreadsAndBatches:
    @each_case
    @each_float
    @each_container
    def test_number_of_threads(self, case: Case, dtype: Any, container: Any) -> None:
        X = container(case.rows(150, dtype))
        Z = case.sketch(n_jobs=1).fit_transform(X)
        for n_jobs in (None, 2, 3, -1):
            assert_same_bits(case.sketch(n_jobs=n_jobs).fit_transform(X), Z)

    @each_case
    @each_float
    @each_container
    def test_size_of_batches(
        self, case: Case, dtype: Any, container: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X = container(case.rows(150, dtype))
        Z = case.sketch().fit_transform(X)
        monkeypatch.setattr(batches, "_BATCH_BYTES", 1)
        assert batches.batch_rows(X, Z.shape[1], 1) < 150
        assert_same_bits(case.sketch().fit_transform(X), Z)

    @each_case
    @each_container
    def test_order_of_rows(self, case: Case, container: Any) -> None:
        X, order = case.rows(70), np.random.default_rng(0).permutation(70)
        sketch = case.sketch().fit(X)
        Z = sketch.transform(container(X))
        assert_same_bits(sketch.transform(container(X[order])), Z[order])

    @given(
        name=st.sampled_from(list(CASES)),
        cuts=st.lists(st.integers(1, 69), max_size=5, unique=True).map(sorted),
        dtype=st.sampled_from([np.float32, np.float64]),
        container=st.sampled_from([np.asarray, sp.csr_array]),
    )
    @settings(max_examples=60)
    def test_any_split_of_the_rows(
        self, name: str, cuts: list[int], dtype: Any, container: Any
    ) -> None:
        X = CASES[name].rows(70, dtype)
        sketch = CASES[name].sketch().fit(X)
        parts = [sketch.transform(container(part)) for part in np.split(X, cuts)]
        assert_same_bits(np.concatenate(parts), sketch.transform(container(X)))


class TestMachines:
    @each_case
    @each_float
    @each_container
    def test_instruction_sets(self, case: Case, dtype: Any, container: Any) -> None:
        X, chosen = container(case.rows(45, dtype)), _native.instruction_set()
        Z = case.sketch().fit_transform(X)
        try:
            for name in _native.instruction_sets():
                _native.select_instruction_set(name)
                assert_same_bits(case.sketch().fit_transform(X), Z)
        finally:
            _native.select_instruction_set(chosen)

    @pytest.mark.parametrize("simd", ["numpy", "baseline"])
    def test_other_processes_and_the_specification(self, simd: str) -> None:
        """A new process, with the NumPy kernels or with the plainest compiled ones."""
        code = "from tests.feature_maps.test_determinism import digest; print(digest())"
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "POWERSKETCH_SIMD": simd, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.strip() == digest()

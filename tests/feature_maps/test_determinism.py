"""A seed means the same bits for ever: on any threads, batches, instruction set and refit."""

from __future__ import annotations

import json
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
from sklearn.base import clone

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
    _native,
)
from powersketch.feature_maps import maps
from powersketch.feature_maps.base import FeatureMap
from tests.feature_maps.cases import (
    CASES,
    FLOATS,
    Case,
    assert_same_bits,
    each_case,
    each_case_with,
    each_estimator,
    rational,
    uncentred,
)
from tests.feature_maps.feature_bits import all_bits

CONTAINERS = [np.asarray, sp.csr_array]

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
        [62.27353331909152, -8.127156050378547, 12.361649660485568, -11.603861684922046],
        [-9.190011220299748, -8.547366794277298, -11.17182474750009, 12.472787853838234],
    ],
    "none by osnap": [
        [-1.320665354582109, -3.6302270592788166, -4.046392707426741, -1.5777061914596358],
        [1.0531254616416235, -3.472936061291235, 1.082887567593349, 0.8201349841195675],
    ],
    "mean": [
        [
            6.681825897259179,
            4.445389061785192,
            -4.1241402428671226,
            -5.79116114103657,
            1.6817369730444442,
            -4.494553680171881,
            2.6172031643004194,
            2.2582062700822196,
        ],
        [
            2.0429806887430932,
            -2.143619666111969,
            1.988709651178096,
            2.7925670259700843,
            1.2037593119711105,
            -3.217126656772347,
            1.8733504292550405,
            1.6163864323218269,
        ],
    ],
    "mean with coef0": [
        [
            4.520459641255607,
            2.3944195179412686,
            -1.794406390573098,
            -2.692313709801074,
            0.7529657628891409,
            -1.522906204469467,
            0.5702700234747682,
        ],
        [
            2.5829596412556057,
            -1.8099549111997,
            1.3564016810631299,
            2.0351347727630174,
            0.7529657628891411,
            -1.5229062044694677,
            0.5702700234747684,
        ],
    ],
    "literal": [
        [-9.90234375, 2.8710937500000004, 3.4726562500000004, -1.1757812499999998],
        [3.609375000000001, -5.703124999999998, -2.9375, 2.1874999999999996],
    ],
}


def golden_features(name: str) -> NDArray[Any]:
    sketch = PolynomialSketch(**GOLDEN_PARAMETERS[name], random_state=GOLDEN_SEED)
    features: NDArray[Any] = sketch.fit_transform(GOLDEN_ROWS)
    return features


# Of the other estimators: the features of the first of these shorter rows.
SHORT_ROWS = GOLDEN_ROWS / 4
SKETCHES: dict[str, FeatureMap] = {
    "gaussian powers": GaussianSketch(0.5, n_components=8, method="power"),
    "gaussian single power": GaussianSketch(2.0, n_components=4, method="single_power"),
    "gaussian fourier": GaussianSketch(2.0, n_components=5, method="fourier"),
    "exp": DotProductSketch(n_components=8, expansion="none"),
    "exp around the mean": DotProductSketch(n_components=6, expansion="mean"),
    "literal exp": DotProductSketch(n_components=8, norm_preserving=False),
    "with gaps": DotProductSketch([0.0, 0.0, 2.0, 0.0, 1.0], n_components=6, expansion="none"),
    "arcsin fitted": DotProductSketch("arcsin", n_components=7, expansion="none", tail="fit"),
    "callable": DotProductSketch(rational, n_components=6, expansion="none"),
    "steps": ArcCosineSketch(0, n_components=8, expansion="none"),
    "ramps": ArcCosineSketch(1, 2, n_components=6, expansion="mean"),
    "squares": ArcCosineSketch(2, n_components=4, expansion="none", base_sketch="osnap"),
    "steps at random": ArcCosineSketch(0, n_components=6, method="random"),
    "ramps at random": ArcCosineSketch(1, 2, n_components=6, method="random"),
    "tangent": NeuralTangentSketch(3, n_components=8, expansion="none"),
    "tangent with bias": NeuralTangentSketch(
        train_output=False, bias_variance=0.25, n_components=6, expansion="mean"
    ),
    "tangent by layers": NeuralTangentSketch(
        2, bias_variance=0.25, n_components=8, expansion="none"
    ),
    "tangent at random": NeuralTangentSketch(n_components=6, method="random"),
    "tangent at random by layers": NeuralTangentSketch(2, n_components=8, method="random"),
}
FIRST_FEATURES: dict[str, list[float]] = {
    "gaussian powers": [
        0.9435504271046395,
        0.23227431531825538,
        -0.1451714470739096,
        -0.1451714470739096,
        -0.08710286824434577,
        0.03191667515905549,
        -0.07021668534992208,
        0.008704547770651497,
    ],
    "gaussian single power": [
        -0.40250637517496946,
        -0.5168985781688498,
        -0.07271776215140466,
        0.7520083808696683,
    ],
    "gaussian fourier": [
        0.6554978197299276,
        0.7007460462682565,
        0.2651841027084981,
        -0.09463074891073432,
        0.0,
    ],
    "exp": [
        1.0,
        0.5039241122655956,
        0.0,
        0.2519620561327978,
        -0.06299051403319945,
        0.1259810280663989,
        -0.07482713163656576,
        0.22448139490969723,
    ],
    "exp around the mean": [
        1.1171928379853655,
        0.22818284554065743,
        -0.21169306959338344,
        -0.19787731136728895,
        0.04055593543789031,
        0.08633070729377729,
    ],
    "literal exp": [
        1.0,
        0.49999999999999994,
        0.0,
        0.24999999999999997,
        -0.06249999999999999,
        0.12499999999999999,
        -0.08789062500000001,
        0.263671875,
    ],
    "with gaps": [
        -0.08575464273840186,
        0.2572639282152055,
        -0.17341494420432374,
        0.040018833277920864,
        0.23058470602992492,
        0.2725091980353659,
    ],
    "arcsin fitted": [
        0.5002499993217653,
        0.0,
        0.25012499966088264,
        -0.06253124991522066,
        0.12506249983044132,
        -0.07788708261381617,
        0.005139756720708679,
    ],
    "callable": [
        0.7071067811865476,
        0.24718804902432107,
        0.0,
        0.12359402451216053,
        0.09269551838412039,
        -0.11877005797990338,
    ],
    "steps": [
        0.7071084069650341,
        0.6288956420249486,
        0.0,
        -0.07861195525311858,
        -0.15722391050623716,
        0.014319035191266536,
        -0.2694582076901972,
        -0.027857032099373052,
    ],
    "ramps": [
        0.4889385384367552,
        0.21089435169320633,
        -0.1653703130890176,
        -0.07286039389175976,
        0.11945856866283729,
        -0.03959294102533881,
    ],
    "squares": [0.23478155301274653, 0.3928997354832123, -0.24621299026638727, -0.2462129902663872],
    "steps at random": [0.0, 0.5773502691896257, 0.5773502691896257, 0.0, 0.0, 0.5773502691896257],
    "ramps at random": [
        -0.0,
        0.11080463753283869,
        0.32108212183471385,
        0.4713737392219007,
        -0.0,
        -0.0,
    ],
    "tangent": [
        0.5933683882440656,
        0.7514270408981173,
        0.04190221182761314,
        0.33844094168456756,
        0.1063671531008641,
        -0.5318357655043204,
        -0.009669741190987647,
        0.029009223572962938,
    ],
    "tangent with bias": [
        0.4216818841132523,
        0.22054922607789354,
        -0.14713891194670659,
        -0.1635527904288156,
        -0.10608485831716033,
        -0.07003342528432471,
    ],
    "tangent by layers": [
        0.5146312326535635,
        -0.7531174837815638,
        0.5,
        -0.6880104311509799,
        0.3286445805453993,
        0.025112324248283007,
        -0.15387690367934684,
        0.8991040851817363,
    ],
    "tangent at random": [
        0.0625,
        -0.18750000000000003,
        0.9375,
        -0.0,
        0.30894311869979435,
        0.41252843955052065,
    ],
    "tangent at random by layers": [
        -0.0,
        -0.0,
        -0.07352139640655131,
        0.22056418921965393,
        -0.2010989871765085,
        0.0477940660718825,
        0.2010989871765085,
        -0.054268006544083265,
    ],
}


class TestSeeds:
    @pytest.mark.parametrize("name", GOLDEN_PARAMETERS)
    def test_fixed_numbers(self, name: str) -> None:
        np.testing.assert_allclose(golden_features(name), GOLDEN[name], rtol=1e-12)

    @pytest.mark.parametrize("name", SKETCHES)
    def test_fixed_numbers_of_other_kernels(self, name: str) -> None:
        sketch = clone(SKETCHES[name]).set_params(random_state=GOLDEN_SEED)
        first = sketch.fit_transform(SHORT_ROWS)[0]
        np.testing.assert_allclose(first, FIRST_FEATURES[name], rtol=1e-12, atol=1e-15)

    @each_case_with(dtype=FLOATS)
    def test_refit_gives_the_same_bits(self, case: Case, dtype: Any) -> None:
        X, sketch = case.rows(dtype=dtype), case.sketch()
        sketch.fit(case.rows(11, seed=9))
        assert_same_bits(sketch.fit_transform(X), case.features(dtype=dtype))

    @each_case
    def test_other_seeds_give_other_features(self, case: Case) -> None:
        X = case.rows()
        Z = [case.sketch(random_state=seed).fit_transform(X) for seed in (1, 2)]
        difference = np.abs(Z[0] - Z[1]).max()
        assert difference > 0.01 * np.abs(Z[0]).max() if case.random else difference == 0

    @each_estimator
    def test_random_state_instance_is_advanced(self, estimator: type[FeatureMap]) -> None:
        X, state = uncentred(20, 30), np.random.RandomState(3)
        sketch = estimator(random_state=state)
        seeds = [sketch.fit(X).seed_ for _ in range(3)]
        assert len(set(seeds)) == 3
        again = np.random.RandomState(3)
        assert [estimator(random_state=again).fit(X).seed_ for _ in range(3)] == seeds

    @each_estimator
    def test_transform_draws_nothing(self, estimator: type[FeatureMap]) -> None:
        X, state = uncentred(20, 30), np.random.RandomState(3)
        sketch = estimator(random_state=state).fit(X)
        before = state.get_state()[2]
        assert_same_bits(sketch.transform(X), sketch.transform(X))
        assert state.get_state()[2] == before

    @each_estimator
    def test_no_seed_gives_a_new_one_each_time(self, estimator: type[FeatureMap]) -> None:
        X = uncentred(20, 30)
        assert estimator().fit(X).seed_ != estimator().fit(X).seed_

    @each_estimator
    def test_seed_can_be_given_back(self, estimator: type[FeatureMap]) -> None:
        X = uncentred(20, 30)
        sketch = estimator(n_components=60)
        Z = sketch.fit_transform(X)
        same = estimator(n_components=60, random_state=sketch.seed_)
        assert_same_bits(same.fit_transform(X), Z)

    @each_estimator
    def test_global_random_state_is_left_alone(self, estimator: type[FeatureMap]) -> None:
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        estimator().fit_transform(uncentred(20, 30))
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


class TestThreadsAndBatches:
    @each_case_with(dtype=FLOATS, container=CONTAINERS)
    def test_number_of_threads(self, case: Case, dtype: Any, container: Any) -> None:
        X = container(case.rows(150, dtype))
        sketch = case.sketch(n_jobs=1).fit(X)
        Z = sketch.transform(X)
        for n_jobs in (None, 2, -1):
            assert_same_bits(sketch.set_params(n_jobs=n_jobs).transform(X), Z)
        assert_same_bits(case.sketch(n_jobs=3).fit_transform(X), Z)

    @each_case_with(dtype=FLOATS, container=CONTAINERS)
    def test_size_of_batches(
        self, case: Case, dtype: Any, container: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X = container(case.rows(150, dtype))
        Z = case.sketch().fit_transform(X)
        monkeypatch.setattr(maps, "_BATCH_BYTES", 1)
        assert maps.batch_rows(X, Z.shape[1], 1) < 150
        assert_same_bits(case.sketch().fit_transform(X), Z)

    @each_case_with(container=CONTAINERS)
    def test_order_of_rows(self, case: Case, container: Any) -> None:
        X, order = case.rows(70), np.random.default_rng(0).permutation(70)
        sketch = case.fitted(70)
        Z = sketch.transform(container(X))
        assert_same_bits(sketch.transform(container(X[order])), Z[order])

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    @each_case_with(dtype=FLOATS, container=CONTAINERS)
    def test_rows_know_nothing_of_their_neighbours(
        self, case: Case, dtype: Any, container: Any
    ) -> None:
        """Not even if one of these is next to nothing, or nothing."""
        sketch, others = case.fitted(70, dtype), np.arange(70) != 11
        Z = sketch.transform(container(case.rows(70, dtype)))
        for factor in (2.0**-70, 0.0):
            X = case.rows(70, dtype)
            X[11] *= dtype(factor)
            assert_same_bits(sketch.transform(container(X))[others], Z[others])

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
        X, sketch = CASES[name].rows(70, dtype), CASES[name].fitted(70, dtype)
        parts = [sketch.transform(container(part)) for part in np.split(X, cuts)]
        assert_same_bits(np.concatenate(parts), sketch.transform(container(X)))


class TestMachines:
    @each_case_with(dtype=FLOATS, container=CONTAINERS)
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
        result = subprocess.run(
            [sys.executable, "-m", "tests.feature_maps.feature_bits"],
            env={**os.environ, "POWERSKETCH_SIMD": simd, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        others, ours = json.loads(result.stdout), all_bits()
        if simd == "numpy":  # which adds the entries of sparse rows in another order
            others, ours = ({k: bits[k] for k in bits if "asarray" in k} for bits in (others, ours))
        assert others == ours

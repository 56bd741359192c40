"""What the package offers, and what importing it brings along."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import json
import os
import subprocess
import sys

import pytest

import powersketch
from powersketch import powers

PUBLIC = [
    "ArcCosineSketch",
    "DotProductSketch",
    "GaussianSketch",
    "LeverageNystroem",
    "NeuralTangentSketch",
    "PolynomialSketch",
    "SketchPreconditioner",
    "SketchedKernelRidge",
    "SketchedKernelRidgeClassifier",
    "__version__",
    "accuracy",
    "compare",
    "kernels",
    "solve_kernel_system",
    "solvers",
]
OPTIONAL = {"dask", "matplotlib", "pandas", "pyarrow", "rich", "typer"}
# Options, and a module that a fit needs with that one only.
MODULES_OF_OPTIONS = {
    "method='ctr'": "powers.complex_to_real",
    "method='tensorsketch'": "powers.tensor_sketch",
    "method='tree'": "powers.tree",
    "method='adaptive'": "powers.adaptive_draws",
    "compression='principal'": "feature_maps.two_stage",
    "n_components='auto', eps=0.5": "accuracy.growth",
}


def modules_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after running `code`."""
    script = f"import json, sys\n{code}\nprint(json.dumps([*sys.modules]))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return set(json.loads(result.stdout))


def packages_after(code: str) -> set[str]:
    """Return the top-level packages among these modules."""
    return {name.partition(".")[0] for name in modules_after(code)}


def code_of_fit(options: str = "") -> str:
    """Return code that fits a sketch of twelve rows, with default parameters but for these."""
    rows = "[[i / 12, 1 - i / 12, i * i / 144, 0.5] for i in range(12)]"
    return f"PolynomialSketch(3, **{{'n_components': 7, **dict({options})}}).fit_transform({rows})"


def test_public_names() -> None:
    assert sorted(powersketch.__all__) == PUBLIC
    for name in powersketch.__all__:
        assert hasattr(powersketch, name)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'powersketch' has no attribute 'Sketch'"):
        _ = powersketch.Sketch
    assert dir(powersketch) == sorted(powersketch.__all__)


def test_importing_it_loads_nothing_else_of_size() -> None:
    """An estimator's module is loaded when it is first asked for."""
    assert not packages_after("import powersketch") & {"numpy", "scipy", "sklearn"}
    assert "sklearn" in packages_after("from powersketch import GaussianSketch")


def test_an_import_loads_what_default_parameters_need() -> None:
    options = {f"powersketch.{module}" for module in MODULES_OF_OPTIONS.values()}
    loaded = modules_after(f"from powersketch import PolynomialSketch\n{code_of_fit()}")
    assert "powersketch.powers.repeated_squaring" in loaded
    assert not loaded & options


def test_an_option_loads_its_module() -> None:
    """So the names above are those that count; in one process, each before its option and after."""
    checks = "".join(
        f"assert 'powersketch.{module}' not in sys.modules\n{code_of_fit(option)}\n"
        f"assert 'powersketch.{module}' in sys.modules\n"
        for option, module in MODULES_OF_OPTIONS.items()
    )
    modules_after(f"from powersketch import PolynomialSketch\n{checks}")


def test_names_that_load_a_module() -> None:
    for name in powers.__all__:
        assert getattr(powers, name) is not None
    assert dir(powers) == sorted(powers.__all__)
    with pytest.raises(AttributeError, match=r"'powersketch\.powers' has no attribute 'Sketch'"):
        _ = powers.Sketch


def test_power_methods_are_classes_by_name() -> None:
    assert list(powers.POWER_METHODS) == ["power", "ctr", "tree", "tensorsketch"]
    assert len(powers.POWER_METHODS) == 4
    assert powers.POWER_METHODS["tensorsketch"] is powers.TensorSketchPowers
    assert "tree" in powers.POWER_METHODS
    assert "forest" not in powers.POWER_METHODS
    with pytest.raises(KeyError, match="forest"):
        _ = powers.POWER_METHODS["forest"]


def test_star_import_gives_the_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from powersketch import *", namespace)
    assert set(PUBLIC) <= set(namespace)


def test_version_is_that_of_the_distribution() -> None:
    assert powersketch.__version__ == importlib.metadata.version("powersketch")


def test_types_are_published() -> None:
    assert (importlib.resources.files(powersketch) / "py.typed").is_file()


def test_importing_and_using_it_loads_no_optional_package() -> None:
    """Beyond those that scikit-learn loads by itself where they are installed."""
    use = "".join(
        f"powersketch.{name}(n_components=2).fit_transform([[0.5, 0.25], [0.75, 0.5]])\n"
        for name in PUBLIC
        if name.endswith("Sketch")
    )
    loaded = packages_after(f"import powersketch\n{use}")
    assert "powersketch" in loaded
    assert not (loaded - packages_after("import sklearn.base")) & OPTIONAL

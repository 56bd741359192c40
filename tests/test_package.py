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
    "LearnedMetric",
    "LeverageNystroem",
    "NeuralTangentSketch",
    "PolynomialSketch",
    "SketchPreconditioner",
    "SketchedKernelRidge",
    "SketchedKernelRidgeClassifier",
    "TablePreparation",
    "__version__",
    "accuracy",
    "compare",
    "kernels",
    "load",
    "save",
    "solve_kernel_system",
]
OPTIONAL = {"dask", "h5py", "matplotlib", "pandas", "pyarrow", "rich", "typer", "zarr"}


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

"""The quickest examples of the gallery run without a warning; `make docs` runs all of them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
QUICK = ["certified_features", "neural_tangent", "sparse_text"]


@pytest.fixture(autouse=True)
def _no_windows() -> object:
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
@pytest.mark.parametrize("name", QUICK)
def test_example_runs_and_draws(name: str) -> None:
    runpy.run_path(str(GALLERY / f"{name}.py"))
    assert plt.get_fignums()


def test_every_example_has_its_place() -> None:
    settings = (GALLERY.parents[1] / "docs" / "conf.py").read_text("utf-8")
    listed = re.findall(r'"(\w+\.py)"', settings)
    assert sorted(listed) == sorted(path.name for path in GALLERY.glob("*.py"))

"""Models whose files later versions must be able to load; ``python -m`` writes them anew.

They are written once for each version of the format, and never changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powersketch import (
    NeuralTangentSketch,
    PolynomialSketch,
    SketchedKernelRidge,
    TablePreparation,
    save,
)

FOLDER = Path(__file__).parent / "golden"


def rows(count: int = 60) -> np.ndarray:
    """Return rows that need no random numbers; stored, as cosines differ between processors."""
    return np.load(FOLDER / "rows.npy")[:count]


def table(count: int = 60) -> pandas.DataFrame:
    """Return a table of all kinds of columns."""
    X = rows(count)
    sizes = np.where(np.arange(count) % 7, X[:, 0], np.nan)
    colours = np.array(["red", "green", "blue"])[np.arange(count) % 3]
    days = pandas.Timestamp("2024-01-30") + pandas.to_timedelta(7 * np.arange(count), "h")
    return pandas.DataFrame({"size": sizes, "colour": colours, "day": days, "width": X[:, 1]})


def _polynomial() -> Any:
    return PolynomialSketch(5, n_components=24, coef0=1.0, random_state=3).fit(rows())


def _tangent() -> Any:
    return NeuralTangentSketch(2, n_components=24, random_state=3).fit(rows().astype(np.float32))


def _classifier() -> Any:
    labels = np.where(rows()[:, 2] > 0.1, "high", "low")
    sketch = PolynomialSketch(3, n_components=24, random_state=3)
    return make_pipeline(StandardScaler(), sketch, RidgeClassifier()).fit(rows(), labels)


def _regression() -> Any:
    model = SketchedKernelRidge("gaussian", features="sketch", n_components=24, random_state=3)
    return make_pipeline(TablePreparation(), model).fit(table(), rows()[:, 1])


MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "polynomial": (_polynomial, lambda model: model.transform(rows(9))),
    "tangent": (_tangent, lambda model: model.transform(rows(9).astype(np.float32))),
    "classifier": (_classifier, lambda model: model.decision_function(rows(9))),
    "regression": (_regression, lambda model: model.predict(table(9))),
}
"""How every model is made, and what is compared."""

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, (make, result) in MODELS.items():
        fitted = make()
        save(fitted, FOLDER / f"{name}.model")
        np.save(FOLDER / f"{name}.npy", result(fitted))
    sys.stdout.write(f"{FOLDER}\n")

"""Wherever a kernel is asked for, a name or a rule for gamma does, and a kernel of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch import LeverageNystroem, SketchPreconditioner, compare, solve_kernel_system
from powersketch.accuracy import statistical_dimension
from powersketch.kernels import Gaussian, Kernel
from powersketch.linalg import KernelOperator
from tests.kernels.kernel_cases import points
from tests.kernels.test_names import InverseQuadratic

X = points(30)
ONES = np.ones(30)


def compared(kernel: Any) -> list[float]:
    found = compare(X, kernel, methods=["nystroem"], components=[8], seeds=1, random_state=0)
    return [measurement.frobenius for measurement in found.measurements]


# What is computed with a kernel, without a sketch of it.
ENTRIES: dict[str, Callable[[Any], Any]] = {
    "operator": lambda kernel: KernelOperator(kernel, X) @ ONES,
    "system": lambda kernel: solve_kernel_system(X, ONES, kernel, alpha=0.1).x,
    "preconditioner": lambda kernel: (
        SketchPreconditioner(X, kernel, 0.1, strategy="nystroem", random_state=0) @ ONES
    ),
    "landmarks": lambda kernel: LeverageNystroem(
        kernel, n_components=8, random_state=0
    ).fit_transform(X),
    "dimension": lambda kernel: float(statistical_dimension(kernel, X, alpha=0.1)),
    "comparison": compared,
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
class TestEntries:
    @pytest.mark.parametrize(
        ("given", "kernel"), [("rbf", Gaussian("scale")), (Gaussian("median"), Gaussian("median"))]
    )
    def test_same_as_with_the_resolved_kernel(
        self, entry: Callable[[Any], NDArray[np.float64]], given: Any, kernel: Kernel
    ) -> None:
        np.testing.assert_array_equal(entry(given), entry(kernel.resolve(X)))

    def test_own_kernel(self, entry: Callable[[Any], NDArray[np.float64]]) -> None:
        assert np.isfinite(entry(InverseQuadratic("scale"))).all()

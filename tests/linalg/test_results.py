"""What the user reads of a result, and the warning for one that failed."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from powersketch.linalg import conjugate_gradients, warn_if_not_converged
from tests.linalg.systems import positive_matrix, vectors


def test_the_text_of_a_result_is_short_and_has_no_arrays() -> None:
    result = conjugate_gradients(positive_matrix(500, 10.0), vectors(500, 3))
    text = repr(result)
    assert len(text) < 400
    assert "array" not in text
    for part in (
        "converged=True",
        f"iterations={result.iterations}",
        f"residual={result.residual:.2g}",
        "(500, 3)",
        "dense matrix in float64",
        "preconditioner: none",
        result.message,
    ):
        assert part in text


def test_an_estimated_residual_is_said_to_be_one() -> None:
    result = conjugate_gradients(np.eye(2), np.ones(2))
    assert result.residual_interval is None
    estimated = replace(result, residual=0.5, residual_interval=(0.4, 0.625))
    assert "residual=0.5 (estimated, between 0.4 and 0.62)" in repr(estimated)


def test_results_cannot_be_changed() -> None:
    result = conjugate_gradients(np.eye(2), np.ones(2))
    with pytest.raises(FrozenInstanceError):
        result.converged = False  # type: ignore[misc]


def test_a_warning_for_what_has_not_converged() -> None:
    good = conjugate_gradients(np.eye(2), np.ones(2))
    bad = conjugate_gradients(positive_matrix(20, 1e4), vectors(20), max_iterations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_not_converged(good)
    with pytest.warns(ConvergenceWarning, match="not converged: a residual of") as caught:
        warn_if_not_converged(bad)
    assert caught[0].filename == __file__

"""Rows to measure on."""

import numpy as np
import scipy.sparse as sp


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Divide every row by its norm, so that no degree overflows."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def normal_rows(rows: int, columns: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    return unit_rows(generator.standard_normal((rows, columns), dtype=np.float32))


def uniform_rows(rows: int, columns: int) -> np.ndarray:
    """Return rows whose mean is far from zero, as that of images and counts is."""
    return unit_rows(np.random.default_rng(0).random((rows, columns), dtype=np.float32))


def sparse_rows(rows: int, columns: int, density: float, seed: int = 0) -> sp.csr_matrix:
    generator = np.random.default_rng(seed)
    return sp.random(
        rows,
        columns,
        density=density,
        format="csr",
        dtype=np.float32,
        random_state=generator,
        data_rvs=lambda count: generator.standard_normal(count, dtype=np.float32),
    )

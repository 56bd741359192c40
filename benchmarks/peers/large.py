"""Solvers of large kernel regressions in plain NumPy, as their papers describe them."""

from typing import Any, Self

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk

BLOCK_ROWS = 4096


def gaussian_values(X: np.ndarray, centres: np.ndarray, gamma: float) -> np.ndarray:
    """Return the kernel matrix in the dtype of the rows."""
    products = X @ centres.T
    products *= 2
    products -= np.einsum("ij,ij->i", X, X)[:, np.newaxis]
    products -= np.einsum("ij,ij->i", centres, centres)
    products *= X.dtype.type(gamma)
    return np.exp(products, out=products)


class Falkon:
    """FALKON [RCR17]: conjugate gradients on stored values at landmarks, two Cholesky factors."""

    def __init__(self, gamma: float, landmarks: int, penalty: float, steps: int = 20) -> None:
        self._gamma, self._size, self._penalty, self._steps = gamma, landmarks, penalty, steps

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Self:
        chosen = np.random.default_rng(0).choice(len(X), self._size, replace=False)
        self._centres, size, count = X[chosen], self._size, len(X)
        values = gaussian_values(X, self._centres, self._gamma)
        square = values[chosen].astype(np.float64)
        T = scipy.linalg.cholesky(square + 1e-7 * size * np.eye(size))
        A = scipy.linalg.cholesky(T @ T.T / size + self._penalty * np.eye(size))

        def coefficients(U: np.ndarray) -> np.ndarray:
            return scipy.linalg.solve_triangular(T, scipy.linalg.solve_triangular(A, U))

        def transposed(V: np.ndarray) -> np.ndarray:
            half = scipy.linalg.solve_triangular(T, V, trans=1)
            return scipy.linalg.solve_triangular(A, half, trans=1)

        def product(U: np.ndarray) -> np.ndarray:
            fitted = values @ coefficients(U).astype(values.dtype)
            sums = transposed((values.T @ fitted).astype(np.float64)) / count
            inner = scipy.linalg.solve_triangular(A, U)
            return sums + self._penalty * scipy.linalg.solve_triangular(A, inner, trans=1)

        self._mean = Y.mean(axis=0)
        right = (values.T @ (Y - self._mean).astype(values.dtype)).astype(np.float64)
        self._coef = coefficients(_conjugate(product, transposed(right) / count, self._steps))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        values = gaussian_values(X, self._centres, self._gamma)
        return values @ self._coef.astype(values.dtype) + self._mean


def _conjugate(product: Any, right: np.ndarray, steps: int) -> np.ndarray:
    solution, residual = np.zeros_like(right), right.copy()
    direction, energy = right.copy(), np.sum(right**2, axis=0)
    for _ in range(steps):
        image = product(direction)
        length = energy / np.sum(direction * image, axis=0)
        solution += length * direction
        residual -= length * image
        before, energy = energy, np.sum(residual**2, axis=0)
        direction = residual + direction * (energy / before)
    return solution


class EigenPro:
    """EigenPro 2: stochastic gradients, with the leading directions of a sample slowed down."""

    def __init__(self, gamma: float, passes: int = 3, rank: int = 160, sample: int = 4000) -> None:
        self._gamma, self._passes, self._rank, self._sample = gamma, passes, rank, sample

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Self:
        generator = np.random.default_rng(0)
        self._X, count = X, len(X)
        chosen = generator.choice(count, self._sample, replace=False)
        square = gaussian_values(X[chosen], X[chosen], self._gamma).astype(np.float64)
        last, size = self._rank, self._sample
        values, vectors = scipy.linalg.eigh(square, subset_by_index=[size - last - 1, size - 1])
        tail, values, vectors = values[0] / size, values[1:] / size, vectors[:, 1:]
        scaled = (1.0 - tail / values) / values / size
        directions = (vectors * scaled) @ vectors.T
        batch = int(min(1.0 / tail, 2048))
        # The largest step that keeps batches of so many rows stable is twice as long.
        step = 1.0 / (1.0 + (batch - 1) * tail)
        self._mean = Y.mean(axis=0)
        targets = (Y - self._mean).astype(X.dtype)
        self._coef = np.zeros_like(targets)
        for _ in range(self._passes):
            for rows in np.array_split(generator.permutation(count), count // batch):
                K = gaussian_values(X[rows], X, self._gamma)
                residual = K @ self._coef - targets[rows]
                self._coef[rows] -= X.dtype.type(step) * residual
                correction = directions @ (K[:, chosen].T @ residual)
                self._coef[chosen] += (step * correction).astype(X.dtype)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return gaussian_values(X, self._X, self._gamma) @ self._coef + self._mean


class PlainSums:
    """Ridge regression from a Gram matrix in float64, one block after the other."""

    def __init__(self, feature_map: Any, alpha: float) -> None:
        self._map, self._alpha = feature_map, alpha

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self._map.fit(X[: 10 * BLOCK_ROWS])
        size = self._map.n_components
        gram, cross = np.zeros((size, size), order="F"), np.zeros(size)
        sums, self._target_mean = np.zeros(size), float(np.mean(y))
        for start in range(0, len(X), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            Z = self._map.transform(X[part]).astype(np.float64)
            gram = dsyrk(1.0, Z.T, beta=1.0, c=gram, overwrite_c=True)
            cross += Z.T @ (y[part] - self._target_mean)
            sums += Z.sum(axis=0)
        gram = dsyrk(-1.0 / len(X), sums[:, np.newaxis], beta=1.0, c=gram, overwrite_c=True)
        gram[np.diag_indices(size)] += self._alpha
        self._coef = scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram), cross)
        self._offset = self._target_mean - sums @ self._coef / len(X)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._map.transform(X) @ self._coef + self._offset

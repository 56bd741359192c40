"""Other people's random features that scikit-learn lacks, in plain NumPy and with its habits."""

import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from powersketch.kernels import Kernel

NOISE = 1e-12  # eigenvalues below it, relative to the largest, are rounding errors


class Peer(TransformerMixin, BaseEstimator):
    """Draws random numbers in `fit`; subclasses say which in `_draw`."""

    def __init__(self, n_components: int = 100, random_state: int | None = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        self._draw(np.random.default_rng(self.random_state), X)
        return self

    def _draw(self, generator: np.random.Generator, X: np.ndarray) -> None:
        raise NotImplementedError


class OrthogonalRandomFeatures(Peer):
    """Cosines and sines of ⟨w, x⟩ for the Gaussian kernel, blocks of w orthogonal.

    F. Yu et al., "Orthogonal Random Features", NIPS 2016.
    """

    def __init__(
        self, gamma: float = 1.0, n_components: int = 100, random_state: int | None = None
    ) -> None:
        super().__init__(n_components, random_state)
        self.gamma = gamma

    def _draw(self, generator: np.random.Generator, X: np.ndarray) -> None:
        columns, count = X.shape[1], self.n_components // 2
        widths = [min(columns, count - start) for start in range(0, count, columns)]
        blocks = [orthogonal_normals(generator, columns, width) for width in widths]
        self.frequencies_ = (math.sqrt(2 * self.gamma) * np.hstack(blocks)).astype(X.dtype)

    def transform(self, X: np.ndarray) -> np.ndarray:
        phases = X @ self.frequencies_
        scale = X.dtype.type(1 / math.sqrt(phases.shape[1]))
        return scale * np.hstack([np.cos(phases), np.sin(phases)])


def orthogonal_normals(generator: np.random.Generator, columns: int, count: int) -> np.ndarray:
    """Return orthogonal directions from the Haar measure, with the norms of normal vectors."""
    Q, R = np.linalg.qr(generator.standard_normal((columns, count)))
    return Q * np.sign(np.diag(R)) * np.sqrt(generator.chisquare(columns, count))


class RandomReluFeatures(Peer):
    """√(2/m) max(⟨w, x⟩, 0)^order, w normal, for the arc-cosine kernel; order 0 is the step.

    Y. Cho and L. Saul, "Kernel Methods for Deep Learning", NIPS 2009.
    """

    def __init__(
        self, order: int = 1, n_components: int = 100, random_state: int | None = None
    ) -> None:
        super().__init__(n_components, random_state)
        self.order = order

    def _draw(self, generator: np.random.Generator, X: np.ndarray) -> None:
        self.weights_ = normal_weights(generator, X, self.n_components)

    def transform(self, X: np.ndarray) -> np.ndarray:
        return activations(X @ self.weights_, self.order)


def normal_weights(generator: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    return generator.standard_normal((X.shape[1], count)).astype(X.dtype)


def activations(sums: np.ndarray, order: int) -> np.ndarray:
    scale = sums.dtype.type(math.sqrt(2 / sums.shape[1]))
    return scale * np.where(sums > 0, sums**order, sums.dtype.type(0))


class TangentPeer(Peer):
    """A peer for the kernel of a trained hidden layer, or for that of both layers."""

    def __init__(
        self,
        train_output: bool = False,
        n_components: int = 100,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, random_state)
        self.train_output = train_output


class GradientFeatures(TangentPeer):
    """The gradient x ⊗ step(W x) of a network with so few neurons that it has m entries.

    For the kernel ½ t κ₀(t) of a trained hidden layer and, with `train_output`, for the tangent
    kernel of both layers. Rows of more than m entries first get a normal projection to √m of them.
    """

    def _draw(self, generator: np.random.Generator, X: np.ndarray) -> None:
        inputs, self.projection_ = X.shape[1], None
        if inputs + self.train_output > self.n_components:
            inputs = math.isqrt(self.n_components)
            self.projection_ = normal_weights(generator, X, inputs) / math.sqrt(inputs)
        neurons = self.n_components // (inputs + self.train_output)
        self.weights_ = normal_weights(generator, X, neurons)

    def transform(self, X: np.ndarray) -> np.ndarray:
        inputs = X if self.projection_ is None else X @ self.projection_.astype(X.dtype)
        sums = X @ self.weights_
        products = np.einsum("ni,nj->nij", inputs, activations(sums, 0)).reshape(len(X), -1)
        if not self.train_output:
            return math.sqrt(0.5) * products
        return np.hstack([activations(sums, 1), products])


class RandomTangentFeatures(TangentPeer):
    """The gradient x ⊗ step(W x) of a network with m neurons, count-sketched to m entries.

    For the same kernels as `GradientFeatures` and far more accurate. With `train_output`, half of
    the entries are the activations of neurons of their own. The sketch of the tensor product is
    that of N. Pham and R. Pagh, "Fast and scalable polynomial kernels via explicit feature maps",
    KDD 2013; the features are those of A. Zandieh et al., "Scaling Neural Tangent Kernels via
    Sketching and Random Features", NeurIPS 2021, for one layer.
    """

    def _draw(self, generator: np.random.Generator, X: np.ndarray) -> None:
        own = self.n_components // 2 if self.train_output else 0
        self.own_weights_ = normal_weights(generator, X, own)
        self.weights_ = normal_weights(generator, X, self.n_components)
        self.size_ = self.n_components - own
        lengths = X.shape[1], self.n_components
        self.tables_ = [count_sketch_table(generator, length, self.size_) for length in lengths]

    def transform(self, X: np.ndarray) -> np.ndarray:
        factors = X, activations(X @ self.weights_, 0)
        pairs = zip(factors, self.tables_, strict=True)
        first, second = (np.fft.rfft(count_sketch(Y, table, self.size_)) for Y, table in pairs)
        products = np.fft.irfft(first * second, self.size_).astype(X.dtype)
        if not self.train_output:
            return math.sqrt(0.5) * products
        return np.hstack([activations(X @ self.own_weights_, 1), products])


def count_sketch_table(
    generator: np.random.Generator, length: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a bucket and a sign for every coordinate."""
    return generator.integers(size, size=length), generator.choice([-1, 1], size=length)


def count_sketch(Y: np.ndarray, table: tuple[np.ndarray, np.ndarray], size: int) -> np.ndarray:
    buckets, signs = table
    sketched = np.zeros((size, len(Y)), dtype=Y.dtype)
    np.add.at(sketched, buckets, (Y * signs.astype(Y.dtype)).T)
    return sketched.T


class KernelNystroem(Peer):
    """scikit-learn's Nystroem for an exact kernel that takes whole matrices."""

    def __init__(
        self, kernel: Kernel, n_components: int = 100, random_state: int | None = None
    ) -> None:
        super().__init__(n_components, random_state)
        self.kernel = kernel

    def _draw(self, generator: np.random.Generator, X: np.ndarray) -> None:
        self.landmarks_ = X[generator.permutation(len(X))[: self.n_components]]
        values, vectors = np.linalg.eigh(self.kernel(self.landmarks_))
        kept = values > NOISE * values[-1]
        self.normalization_ = vectors[:, kept] / np.sqrt(values[kept])

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self.kernel(X, self.landmarks_) @ self.normalization_

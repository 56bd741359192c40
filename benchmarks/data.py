"""Rows to measure on."""

import gzip
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Divide every row by its norm, so that no degree overflows."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def normal_rows(rows: int, columns: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    return unit_rows(generator.standard_normal((rows, columns), dtype=np.float32))


def uniform_rows(rows: int, columns: int) -> np.ndarray:
    """Return rows whose mean is far from zero, as that of images and counts is."""
    return unit_rows(np.random.default_rng(0).random((rows, columns), dtype=np.float32))


def low_rank_rows(rows: int, columns: int, rank: int = 20) -> np.ndarray:
    """Return rows of norm one, half of it in a random subspace and half of it noise."""
    generator = np.random.default_rng(0)
    factors = generator.standard_normal((rows, rank), dtype=np.float32)
    directions = generator.standard_normal((rank, columns), dtype=np.float32)
    noise = generator.standard_normal((rows, columns), dtype=np.float32)
    return unit_rows(unit_rows(factors @ directions) + unit_rows(noise))


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


def digits(rows: int) -> np.ndarray:
    return load_digits().data[:rows]


def fashion_mnist(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels in [0, 1] as float32, and labels; `part` is "train" or "t10k"."""
    check_fashion_mnist()
    pixels = _idx_entries(f"{part}-images-idx3-ubyte.gz", header=16)
    labels = _idx_entries(f"{part}-labels-idx1-ubyte.gz", header=8)
    return pixels.reshape(len(labels), -1) / np.float32(255), labels.astype(np.intp)


def check_fashion_mnist() -> None:
    if not FASHION_MNIST.is_dir():
        raise FileNotFoundError(
            f"Fashion-MNIST is not in {FASHION_MNIST}: run  apt-get install dataset-fashion-mnist"
        )


def _idx_entries(name: str, header: int) -> np.ndarray:
    """Return the bytes of an idx file behind its header: a magic number and the lengths."""
    with gzip.open(FASHION_MNIST / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)

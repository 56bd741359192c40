"""Ridge regression on features with Ray: sums of blocks on the workers, one solution here.

Needs ``pip install ray``, and was run with version 2.60. The functions are those of every other
engine: `block_statistics` of a block of features and targets, `RidgeStatistics.merged` in the order
of the blocks, and `solve`.
"""

from __future__ import annotations

import numpy as np
import ray

from powersketch import GaussianSketch
from powersketch.kernel_ridge import RidgeStatistics, block_statistics

BLOCKS, ROWS = 8, 5_000


def block(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets; in real life they are read from storage."""
    X = np.random.default_rng(number).random((ROWS, 10))
    return X, np.sin(4 * X[:, 0]) + X[:, 1]


@ray.remote
def sums_of_block(sketch: GaussianSketch, number: int) -> RidgeStatistics:
    X, y = block(number)
    return block_statistics(sketch.transform(X), y)


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    sketch = GaussianSketch(0.5, n_components=256, random_state=0).fit(block(0)[0])
    shared = ray.put(sketch)
    parts = ray.get([sums_of_block.remote(shared, number) for number in range(BLOCKS)])
    solution = RidgeStatistics.merged(parts).solve(alpha=1e-3)
    X, y = block(BLOCKS)
    residuals = y - sketch.transform(X) @ solution.coef - solution.intercept
    print(f"R² on new rows: {1 - residuals.var() / y.var():.4f}")
    ray.shutdown()


if __name__ == "__main__":
    main()

"""Ridge regression on features with Spark: sums of partitions on the executors, one solution here.

Needs ``pip install pyspark`` and Java, and was run with versions 4.3 and 17. `block_statistics`,
`RidgeStatistics.merged` and `solve` are the same as for every other engine; the parts come back
with their numbers, so that they are merged in a fixed order and weights have the same bits in every
run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pyspark.sql import SparkSession

from powersketch import GaussianSketch
from powersketch.kernel_ridge import RidgeStatistics, block_statistics

BLOCKS, ROWS = 8, 5_000


def block(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets; in real life they are read from storage."""
    X = np.random.default_rng(number).random((ROWS, 10))
    return X, np.sin(4 * X[:, 0]) + X[:, 1]


def main() -> None:
    spark = SparkSession.builder.master("local[2]").appName("powersketch").getOrCreate()
    sketch = GaussianSketch(0.5, n_components=256, random_state=0).fit(block(0)[0])
    shared = spark.sparkContext.broadcast(sketch)

    def sums_of_partition(numbers: Iterator[int]) -> Iterator[tuple[int, RidgeStatistics]]:
        for number in numbers:
            X, y = block(number)
            yield number, block_statistics(shared.value.transform(X), y)

    numbers = spark.sparkContext.parallelize(range(BLOCKS), BLOCKS)
    parts = sorted(numbers.mapPartitions(sums_of_partition).collect(), key=lambda part: part[0])
    solution = RidgeStatistics.merged([sums for _, sums in parts]).solve(alpha=1e-3)
    X, y = block(BLOCKS)
    residuals = y - sketch.transform(X) @ solution.coef - solution.intercept
    print(f"R² on new rows: {1 - residuals.var() / y.var():.4f}")
    spark.stop()


if __name__ == "__main__":
    main()

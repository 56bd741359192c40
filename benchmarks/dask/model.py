"""What a fit by sums takes on many workers: a simulation of every task and every transfer."""

from dataclasses import dataclass, replace
from functools import cached_property

FAN_IN = 4
BYTES = 8


@dataclass(frozen=True)
class Machine:
    """Rates of one core, and of the network between two workers."""

    passes_per_second: float  # rows read or generated, checked and sampled
    products_per_second: float  # of a row's features with each other, per core
    features_per_second: float
    bytes_per_second: float
    seconds_per_task: float  # of the scheduler, for every task
    additions_per_second: float  # of products in two sums that are merged


@dataclass(frozen=True)
class Fit:
    """A fit of n rows with m features, in blocks, on workers with a core each."""

    rows: float
    columns: int
    features: int
    block: int
    workers: int
    machine: Machine

    @property
    def blocks(self) -> int:
        return max(round(self.rows / self.block), 1)

    @property
    def statistics_bytes(self) -> float:
        """The size of a Gram matrix with what is beside it."""
        return BYTES * (self.features**2 + 3 * self.features)

    @property
    def seconds_of_block(self) -> float:
        m, machine = self.features, self.machine
        sums = self.block * m * (m / machine.products_per_second + 1 / machine.features_per_second)
        return self.block / machine.passes_per_second + sums

    @cached_property
    def simulated(self) -> tuple[float, float]:
        """Seconds until the last sum is there, and the most bytes that a worker receives.

        Every worker computes a run of neighbours, as Dask places them. A sum is made where its
        first part is; parts that are elsewhere are sent there. The scheduler hands out one task
        after the other.
        """
        free, received = [0.0] * self.workers, [0.0] * self.workers
        at = [min(i * self.workers // self.blocks, self.workers - 1) for i in range(self.blocks)]
        ready = []
        for number, worker in enumerate(at):
            handed_out = (number + 1) * self.machine.seconds_per_task
            free[worker] = max(free[worker], handed_out) + self.seconds_of_block
            ready.append(free[worker])
        add = self.features**2 / self.machine.additions_per_second
        send = self.statistics_bytes / self.machine.bytes_per_second
        while len(ready) > 1:
            above, places = [], []
            for start in range(0, len(ready), FAN_IN):
                parts = range(start, min(start + FAN_IN, len(ready)))
                home, time = at[start], 0.0
                for part in parts:
                    moved = at[part] != home
                    time = max(time, ready[part] + (send if moved else 0.0))
                    received[home] += self.statistics_bytes if moved else 0.0
                merged = max(time, free[home]) + (len(parts) - 1) * add
                free[home] = merged
                above.append(merged)
                places.append(home)
            ready, at = above, places
        return ready[0], max(received)

    @property
    def seconds_of_sample(self) -> float:
        """One more pass, and the sample's way to the client."""
        sample = min(self.rows, 65_536) * self.columns * BYTES
        passes = self.rows / self.workers / self.machine.passes_per_second
        return passes + sample / self.machine.bytes_per_second

    @property
    def seconds(self) -> float:
        return self.simulated[0] + self.seconds_of_sample

    def on(self, workers: int) -> "Fit":
        return replace(self, workers=workers)

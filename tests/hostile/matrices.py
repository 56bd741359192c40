"""Rows that an attacker, or plain bad luck, would give: each with a name and what is special."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Maker = Callable[[np.random.Generator, int, int], Any]

ROWS, COLUMNS = 40, 12


@dataclass(frozen=True)
class Matrix:
    """A kind of rows; `refusal` says whether an error is "wrong", "allowed" or "expected"."""

    name: str
    special: str
    refusal: str
    make: Maker

    def rows(self, seed: int = 0, rows: int = ROWS, columns: int = COLUMNS) -> Any:
        """Return rows of about that shape, the same for the same seed."""
        return self.make(np.random.default_rng([seed, len(self.name)]), rows, columns)

    @property
    def has_finite_norms(self) -> bool:
        """Whether squares of the entries can be summed."""
        X = self.rows()
        return float(abs(X).max()) < 1e-3 * float(np.sqrt(np.finfo(X.dtype).max))


MATRICES: dict[str, Matrix] = {}


def _add(name: str, special: str, make: Maker, refusal: str = "allowed") -> None:
    MATRICES[name] = Matrix(name, special, refusal, make)


def _kind(name: str, special: str, refusal: str = "allowed") -> Callable[[Maker], Maker]:
    """Enter a function into the table."""

    def enter(make: Maker) -> Maker:
        _add(name, special, make, refusal)
        return make

    return enter


def normal(random: np.random.Generator, rows: int, columns: int) -> Float64:
    """Return the rows that most others are made from: norms about one, not centred."""
    return random.normal(loc=0.4, size=(rows, columns)) / np.sqrt(columns)


def one_hot(random: np.random.Generator, rows: int, columns: int) -> Float64:
    X = np.zeros((rows, columns))
    X[np.arange(rows), random.integers(0, columns, rows)] = 1.0
    return X


# Ordinary rows: to refuse them is a fault, too.

_add("normal", "nothing", normal, "wrong")
_add("uniform", "entries in [0, 1]", lambda r, n, d: r.random((n, d)), "wrong")
_add("positive", "far from the origin, all in one cone", lambda r, n, d: 2 + r.random((n, d)))
_add("counts", "small whole numbers", lambda r, n, d: r.poisson(0.7, (n, d)).astype(float), "wrong")
_add("one-hot", "orthogonal or equal rows", one_hot, "wrong")
_add("one-hot CSR", "the same, sparse", lambda *a: sp.csr_array(one_hot(*a)), "wrong")
_add("float32", "single precision", lambda *a: normal(*a).astype(np.float32), "wrong")
_add("one row", "no variance", lambda r, n, d: normal(r, 1, d))
_add("one column", "rank one", lambda r, n, d: normal(r, n, 1), "wrong")
_add("two columns", "many monomials fit", lambda r, n, d: normal(r, n, 2), "wrong")
_add("wide", "more columns than rows", lambda r, n, d: normal(r, 8, 100), "wrong")
_add("all zero", "no direction, no variance", lambda r, n, d: np.zeros((n, d)))
_add("empty CSR", "sparse without an entry", lambda r, n, d: sp.csr_array((n, d)))
_add("constant", "all rows equal", lambda r, n, d: np.ones((n, d)))


@_kind("duplicates", "every row twice", "wrong")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    return np.repeat(normal(random, -(-rows // 2), columns), 2, axis=0)[:rows]


@_kind("near duplicates", "pairs of rows that differ by 1e-9", "wrong")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    X = np.repeat(normal(random, -(-rows // 2), columns), 2, axis=0)[:rows]
    X[::2] += 1e-9 * random.normal(size=X[::2].shape)
    return X


@_kind("zero rows", "every third row is zero", "wrong")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    X = normal(random, rows, columns)
    X[::3] = 0.0
    return X


@_kind("zero rows CSR", "rows without an entry, and empty columns", "wrong")
def _(random: np.random.Generator, rows: int, columns: int) -> Any:
    X = normal(random, rows, columns)
    X[::3] = 0.0
    X[:, ::2] = 0.0
    return sp.csr_array(X)


@_kind("constant columns", "half of the columns never change", "wrong")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    X = normal(random, rows, columns)
    X[:, ::2] = X[0, ::2]
    return X


@_kind("opposite rows", "x and -x: the mean is zero, cosines are -1", "wrong")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    half = normal(random, -(-rows // 2), columns)
    return np.vstack((half, -half))[:rows]


# Extreme sizes: what cannot be represented may be refused, never be wrong.


def _scaled(factor: float) -> Maker:
    return lambda *shape: factor * normal(*shape)


for _exponent in (300, 160, 150, 100, 20, 17, 8, -8, -20, -100, -150, -160, -300, -320):
    _add(f"1e{_exponent}", f"all entries about 1e{_exponent}", _scaled(float(f"1e{_exponent}")))
for _exponent in (38, 18, -18, -37, -44):
    _add(
        f"float32 1e{_exponent}",
        "at the ends of single precision",
        lambda *shape, f=float(f"1e{_exponent}"): np.clip(
            f * normal(*shape), np.finfo(np.float32).min, np.finfo(np.float32).max
        ).astype(np.float32),
    )
_add(
    "largest float64",
    "entries are zero or the largest number",  # of both signs, scikit-learn's own check warns
    lambda r, n, d: r.choice([0.0, 1.0], (n, d)) * np.finfo(np.float64).max,
)
_add(
    "denormals",
    "the smallest numbers above zero",
    lambda r, n, d: r.integers(0, 4, (n, d)) * np.nextafter(0, 1),
)
_add("offset 1e8", "1e8 + something small", lambda r, n, d: 1e8 + r.normal(size=(n, d)))
_add(
    "offset in one column",
    "a time in seconds beside small numbers",
    lambda r, n, d: normal(r, n, d) + 1.7e9 * (np.arange(d) == 0),
)


@_kind("mixed rows", "norms from 1e-12 to 1e12")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    return normal(random, rows, columns) * np.logspace(-12, 12, rows)[:, np.newaxis]


@_kind("very mixed rows", "norms from 1e-200 to 1e200")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    return normal(random, rows, columns) * np.logspace(-200, 200, rows)[:, np.newaxis]


@_kind("mixed columns", "columns of sizes from 1e-6 to 1e6")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    return normal(random, rows, columns) * np.logspace(-6, 6, columns)


@_kind("very mixed columns", "columns of sizes from 1e-160 to 1e150")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    return normal(random, rows, columns) * np.logspace(-160, 150, columns)


@_kind("mixed columns CSR", "the same, sparse")
def _(random: np.random.Generator, rows: int, columns: int) -> Any:
    X = normal(random, rows, columns) * np.logspace(-6, 6, columns)
    X[random.random(X.shape) < 0.7] = 0.0
    return sp.csr_array(X)


# Heavy tails and fill values.

_add("Cauchy", "no variance", lambda r, n, d: r.standard_cauchy((n, d)))


@_kind("one row x 30", "one row in forty is thirty times longer")
def _(random: np.random.Generator, rows: int, columns: int) -> Float64:
    X = normal(random, rows, columns)
    X[rows // 2] *= 30.0
    return X


@dataclass(frozen=True)
class AbsurdRow:
    """A row that no measurement would give, among ordinary ones."""

    name: str
    special: str
    change: Callable[[Float64], Float64]

    def among(self, X: Float64, index: int) -> Float64:
        """Return the rows with one of them made absurd."""
        changed = X.copy()
        changed[index] = self.change(X[index])
        return changed


ABSURD_ROWS = {
    row.name: row
    for row in (
        AbsurdRow("x 1e10", "a slip of units", lambda x: 1e10 * x),
        AbsurdRow("-9999", "missing, as old files write it", lambda x: np.full_like(x, -9999.0)),
        AbsurdRow("1e20", "missing, as climate models write it", lambda x: np.full_like(x, 1e20)),
        AbsurdRow("9.97e36", "missing, as netCDF writes it", lambda x: np.full_like(x, 9.97e36)),
        AbsurdRow("one entry 1e10", "a slip in one cell", lambda x: np.append(1e10, x[1:])),
    )
}
for _absurd in ABSURD_ROWS.values():
    _add(
        f"one row {_absurd.name}",
        _absurd.special,
        lambda r, n, d, absurd=_absurd: absurd.among(normal(r, n, d), n // 2),
    )


# What has to be refused.


def _with_entry(value: float) -> Maker:
    def make(random: np.random.Generator, rows: int, columns: int) -> Float64:
        X = normal(random, rows, columns)
        X[rows // 2, columns // 2] = value
        return X

    return make


_add("NaN", "one entry is missing", _with_entry(np.nan), "expected")
_add("inf", "one entry is infinite", _with_entry(np.inf), "expected")
_add("-inf", "one entry is infinite", _with_entry(-np.inf), "expected")
_add("NaN CSR", "sparse", lambda *a: sp.csr_array(_with_entry(np.nan)(*a)), "expected")
_add("inf CSC", "sparse", lambda *a: sp.csc_array(_with_entry(np.inf)(*a)), "expected")
_add("NaN in a list", "no array", lambda *a: _with_entry(np.nan)(*a).tolist(), "expected")
_add("complex", "no real numbers", lambda *a: normal(*a) + 1j, "expected")
_add("text", "no numbers", lambda r, n, d: np.full((n, d), "a"), "expected")
_add("no rows", "nothing to look at", lambda r, n, d: np.empty((0, d)), "expected")
_add("no columns", "nothing to look at", lambda r, n, d: np.empty((n, 0)), "expected")
_add("one dimension", "a vector", lambda r, n, d: normal(r, 1, d)[0], "expected")
_add("three dimensions", "a stack", lambda *a: normal(*a)[:, np.newaxis], "expected")
_add(
    "masked",
    "a mask hides an entry that is no measurement",
    lambda *a: np.ma.masked_equal(_with_entry(-9999.0)(*a), -9999.0),
    "expected",
)

GOOD = {name: matrix for name, matrix in MATRICES.items() if matrix.refusal != "expected"}
BAD = {name: matrix for name, matrix in MATRICES.items() if matrix.refusal == "expected"}

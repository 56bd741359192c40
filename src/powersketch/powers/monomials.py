"""The exact symmetric power: x^⊗l has only C(d + l − 1, l) different entries."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real

_HIGHEST_IN_FLOAT32 = 32
# Roots of multinomials are up to 2^(degree / 2) for two variables. Up to this degree, they do not
# turn the smallest numbers of float64, which are not rounded as precisely, into any that count.
_HIGHEST_DEGREE = 2000


def monomials_fit(columns: int, degree: int, size: int) -> bool:
    """Tell whether all monomials of a degree can be computed and fit a number of features."""
    return degree <= _HIGHEST_DEGREE and monomial_count(columns, degree) <= size


def monomial_count(columns: int, degree: int) -> int:
    """Return the number of monomials of a degree in `columns` variables.

    >>> monomial_count(3, 2)
    6
    """
    return math.comb(columns + degree - 1, degree)


@dataclass(frozen=True, eq=False)
class Monomials:
    """Features with ⟨z(x), z(y)⟩ = ⟨x, y⟩^degree exactly.

    A monomial of degree l is one of degree l − 1 (`parents[l]`) times a variable (`variables[l]`)
    that is not below any variable in it, and times a factor (`factors[l]`): all factors together
    give the root of its multinomial. Of rows of norm one no feature of any level is above one, so
    that nothing overflows at any degree.
    """

    parents: tuple[NDArray[np.int64], ...]
    variables: tuple[NDArray[np.int64], ...]
    factors: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, columns: int, degree: int) -> Self:
        """List all monomials of `degree` ≥ 1."""
        variables = [np.arange(columns)]
        parents = [np.zeros(columns, dtype=np.int64)]
        factors = [np.ones(columns)]
        run = np.ones(columns)  # how often the last variable occurs in each monomial
        for level in range(2, degree + 1):
            choices = columns - variables[-1]
            parent = np.repeat(np.arange(len(choices)), choices)
            first = np.repeat(np.cumsum(choices) - choices, choices)
            variable = variables[-1][parent] + np.arange(len(parent)) - first
            run = np.where(variable == variables[-1][parent], run[parent] + 1, 1)
            parents.append(parent)
            variables.append(variable)
            factors.append(np.sqrt(level / run))
        return cls(tuple(parents), tuple(variables), tuple(factors))

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self.variables[-1])

    def apply(self, X: Real) -> Real:
        """Return the monomials of every row; those of high degree are computed in float64.

        Low powers of a high monomial can be too small for float32 even if it is not.
        """
        kind = X.dtype if len(self.factors) <= _HIGHEST_IN_FLOAT32 else np.dtype(np.float64)
        rows = X.astype(kind, copy=False)
        features: Real = rows
        levels = zip(self.parents[1:], self.variables[1:], self.factors[1:], strict=True)
        for parent, variable, factor in levels:
            features = features[:, parent] * (rows[:, variable] * factor.astype(kind))
        return features.astype(X.dtype, copy=False)

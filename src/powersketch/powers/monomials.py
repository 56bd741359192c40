"""The exact symmetric power: x^⊗l has only C(d + l − 1, l) different entries."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from powersketch.native import Real


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
    that is not below any variable in it; its coefficient is the root of its multinomial.
    """

    parents: tuple[NDArray[np.int64], ...]
    variables: tuple[NDArray[np.int64], ...]
    coefficients: NDArray[np.float64]

    @classmethod
    def of(cls, columns: int, degree: int) -> Self:
        """List all monomials of `degree` ≥ 1."""
        variables = [np.arange(columns)]
        parents = [np.zeros(columns, dtype=np.int64)]
        run = np.ones(columns)  # how often the last variable occurs in each monomial
        multinomial = np.ones(columns)
        for level in range(2, degree + 1):
            choices = columns - variables[-1]
            parent = np.repeat(np.arange(len(choices)), choices)
            first = np.repeat(np.cumsum(choices) - choices, choices)
            variable = variables[-1][parent] + np.arange(len(parent)) - first
            run = np.where(variable == variables[-1][parent], run[parent] + 1, 1)
            multinomial = multinomial[parent] * level / run
            parents.append(parent)
            variables.append(variable)
        return cls(tuple(parents), tuple(variables), np.sqrt(multinomial))

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self.coefficients)

    def apply(self, X: Real) -> Real:
        """Return the monomials of every row."""
        features: Real = X
        for parent, variable in zip(self.parents[1:], self.variables[1:], strict=True):
            features = features[:, parent] * X[:, variable]
        weighted: Real = features * self.coefficients.astype(X.dtype)
        return weighted

"""What solvers are given: checks of operators, right-hand sides, preconditioners, tolerances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from powersketch.arrays import divide_or_zero
from powersketch.exceptions import InputError, InputTypeError
from powersketch.linalg.panels import Float64, Real, exact_product, rounded_product
from powersketch.validation import sound_array

# From (n, t) vectors to (n, t) vectors.
BlockFunction: TypeAlias = Callable[[Float64], Float64]
Exponents: TypeAlias = NDArray[np.int32]


class _MatrixOperator(LinearOperator):
    """A dense matrix, multiplied panel by panel."""

    def __init__(self, matrix: Real) -> None:
        super().__init__(np.dtype(np.float64), matrix.shape)
        self._matrix = matrix
        self.rounding = float(np.finfo(matrix.dtype).eps)

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"dense matrix in {self._matrix.dtype}"

    def exact_product(self, V: Float64) -> Float64:
        """Return the product with several vectors at float64 accuracy."""
        return exact_product(self._matrix, V)

    def _matmat(self, V: Any) -> Float64:
        return rounded_product(self._matrix, np.asarray(V, dtype=np.float64))

    def _rmatmat(self, V: Any) -> Float64:
        return rounded_product(self._matrix.T, np.asarray(V, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A x = b for several b at once, each scaled to norm one, so that residuals are relative.

    The norm of a column of b is `norms` times two to the power of `exponents`: its own value may
    be beyond the range of numbers.
    """

    operator: Any
    right: Float64
    start: Float64
    norms: Float64
    exponents: Exponents
    shape: tuple[int, ...]

    @classmethod
    def checked(cls, operator: Any, b: ArrayLike, x0: ArrayLike | None) -> Self:
        """Return the system, or say what is wrong with its parts."""
        operator = as_operator("operator", operator)
        size = operator.shape[0]
        if operator.shape != (size, size):
            raise InputError(f"the operator has shape {operator.shape}; allowed is (n, n).")
        right = _checked_columns("b", b, size)
        shape = np.shape(b)
        start = np.zeros_like(right)
        if x0 is not None:
            if np.shape(x0) != shape:
                raise InputError(
                    f"x0 has shape {np.shape(x0)}; allowed is that of b, {shape}: give an entry "
                    "of x0 for every entry of b."
                )
            start = _checked_columns("x0", x0, size)
        exponents = np.frexp(np.abs(right).max(axis=0))[1]
        # A power of two changes no digit, and near one squares neither overflow nor underflow.
        right = np.ldexp(right, -exponents)
        norms = column_norms(right)
        # Zero is the solution for zero.
        inverse = divide_or_zero(1.0, norms)
        with np.errstate(over="ignore"):
            start = np.ldexp(start, -exponents) * inverse
        # Next to such a b even zero is nearer to the solution.
        start[~np.isfinite(start)] = 0.0
        return cls(operator, right * inverse, start, norms, exponents, shape)

    def products(self) -> list[tuple[BlockFunction, float]]:
        """Return functions that multiply by A, the quickest first, with their machine epsilon."""
        precise = float(np.finfo(np.float64).eps)
        rounding = getattr(self.operator, "rounding", precise)
        products = [(self.operator.matmat, rounding)]
        if rounding > precise and hasattr(self.operator, "exact_product"):
            products.append((self.exact_product, precise))
        return products

    def exact_product(self, V: Float64) -> Float64:
        """Return A V as accurately as the operator can."""
        product: Float64 = getattr(self.operator, "exact_product", self.operator.matmat)(V)
        return product

    def unscaled(self, x: Float64) -> Float64:
        """Return the solution for b as it was given, infinite where it is out of range."""
        with np.errstate(over="ignore"):
            return np.ldexp(x * self.norms, self.exponents).reshape(self.shape)


def as_operator(name: str, operator: Any) -> Any:
    """Return a SciPy operator that multiplies by the given operator, sparse or dense matrix."""
    if isinstance(operator, LinearOperator):
        return operator
    operator = sound_array(name, operator)
    if sparse.issparse(operator):
        return aslinearoperator(operator)
    matrix = np.asarray(operator)
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2:
        raise InputTypeError(
            f"{name} is a {type(operator).__name__} of dtype {matrix.dtype} and {matrix.ndim} "
            "dimensions; allowed are a scipy LinearOperator, a sparse matrix and an array of "
            "real numbers with 2 dimensions."
        )
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float64, copy=False)
    return _MatrixOperator(matrix)


def as_preconditioner(preconditioner: Any, size: int) -> BlockFunction:
    """Return the function that applies the approximate inverse to (n, t) vectors."""
    if preconditioner is None:
        return np.copy
    if callable(preconditioner) and not isinstance(preconditioner, LinearOperator):
        return lambda V: _checked_image(preconditioner(V), V)
    operator = as_operator("preconditioner", preconditioner)
    if operator.shape != (size, size):
        raise InputError(
            f"the preconditioner has shape {operator.shape}; allowed is that of the operator, "
            f"{(size, size)}: an approximate inverse of it."
        )
    return lambda V: _checked_image(operator.matmat(V), V)


def described(thing: Any) -> str:
    """Return in a few words what an operator or a preconditioner is."""
    if thing is None:
        return "none"
    if hasattr(thing, "describe"):
        return str(thing.describe())
    return str(getattr(thing, "__name__", type(thing).__name__))


def column_norms(V: Float64) -> Float64:
    """Return the Euclidean norm of every column."""
    return np.sqrt(column_products(V, V))


def column_products(V: Float64, W: Float64) -> Float64:
    """Return the inner product of every column of V with the one of W."""
    products: Float64 = np.einsum("ij,ij->j", V, W)
    return products


def _checked_columns(name: str, vectors: ArrayLike, size: int) -> Float64:
    if sparse.issparse(vectors):
        raise InputTypeError(f"{name} is sparse; allowed is a dense array: use {name}.toarray().")
    array = np.asarray(sound_array(name, vectors))
    if array.dtype.kind not in "biuf":
        raise InputTypeError(
            f"{name} has dtype {array.dtype}; allowed are real numbers: "
            f"convert with {name}.astype(float)."
        )
    if array.ndim not in (1, 2) or array.shape[0] != size or not array.size:
        raise InputError(
            f"{name} has shape {array.shape}; allowed are ({size},) and ({size}, t) with t of at "
            "least 1, as the operator has that many rows."
        )
    if not np.isfinite(array).all():
        raise InputError(f"{name} contains NaN or infinity; allowed are finite numbers.")
    return array.astype(np.float64).reshape(size, -1)


def _checked_image(image: Any, V: Float64) -> Float64:
    values = np.asarray(image, dtype=np.float64)
    if values.shape != V.shape:
        raise InputError(
            f"the preconditioner turned vectors of shape {V.shape} into {values.shape}; allowed "
            "is the same shape: it gets a column for every right-hand side that is iterated."
        )
    return values

"""A preconditioner of kernel systems from sketches."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from powersketch.arrays import Rows
from powersketch.exceptions import InputError
from powersketch.execution import Progress, thread_count
from powersketch.feature_maps import FeatureMap
from powersketch.kernel_systems.approximation import Approximation
from powersketch.kernel_systems.feature_factor import feature_approximation, fitted_map
from powersketch.kernel_systems.inputs import checked_alpha, checked_rows
from powersketch.kernel_systems.nystroem import LANDMARKS, nystroem
from powersketch.kernel_systems.sketched_data import row_length, sketched_data
from powersketch.kernels import Kernel, as_kernel
from powersketch.linalg import LowRankInverse, TriangularFactor
from powersketch.parameters import (
    checked_integer,
    checked_verbose,
    one_of,
    refuse_unless_default,
)
from powersketch.random_streams import RandomStreams, seed_from

__all__ = ["STRATEGIES", "SketchPreconditioner"]

STRATEGIES = ("sketched-data", "features", "nystroem")
# Up to here a factorisation is a matter of a second.
_FEW_ROWS = 4000
# Longer rows than many are compressed; but two matrices of more rows than this fill the memory.
_MANY_ROWS = 20_000


class SketchPreconditioner(LinearOperator):
    r"""An approximate inverse of the kernel matrix :math:`K + \alpha I`.

    A symmetric positive definite SciPy ``LinearOperator`` in float64: give it to
    :func:`powersketch.linalg.conjugate_gradients` or, as ``M``, to ``scipy.sparse.linalg.cg``.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n, d)
        Finite real numbers, rows are samples. They are left as they are.
    kernel : powersketch.kernels.Kernel or str
        The kernel whose matrix is to be inverted, or its name.
    alpha : float, default=0.0
        Added to the diagonal of K; not negative.
    strategy : {"auto", "sketched-data", "features", "nystroem"}, default="auto"
        What stands in for K.

        - "sketched-data": the exact kernel matrix of compressed rows, by a Cholesky factor. Needs
          memory for n² numbers; best where rows are longer than there are many.
        - "features": Z Zᵀ for the features Z of a sketch. With at least n features, the
          triangular factor of [SWYZ21], Algorithm 2; with fewer, Woodbury's identity.
        - "nystroem": a Nyström approximation. Needs memory for n numbers per component.
        - "auto": "sketched-data" up to 4000 rows, and up to 20,000 if they have at least 2n
          entries each; else "nystroem".
    n_components : int, default=None
        The number of coordinates, of features, or of landmarks, at least 1. None takes 3 n
        coordinates (all d, if the rows have fewer entries), 4 n features, or n / 12 landmarks, but
        from 100 to 2000.
    landmarks : {"leverage", "range-finder", "uniform"}, default="leverage"
        Only for "nystroem": rows drawn by leverage, random mixtures of all rows, or rows drawn
        with equal probabilities. Mixtures approximate K better, but take a product with K.
    matrix : ndarray of shape (n, n), default=None
        K itself, without alpha, if it is at hand: "nystroem", which alone may be given one, then
        takes its columns from there.
    map : feature map, default=None
        Only for "features": a feature map of the kernel. A copy of it is fitted, with a seed from
        `random_state` unless it has its own. None is the sketch of this package for the kernel.
    random_state : int, RandomState or None, default=None
        Seed of the sketch.
    n_jobs : int, default=None
        Number of threads, with scikit-learn's meaning.
    verbose : int, default=0
        Whether to report progress on standard error.

    Attributes
    ----------
    strategy_ : str
        The strategy in use.
    n_components_ : int
        The components in use.
    nugget_ : float
        What the approximation has on the diagonal beside the sketch: alpha, what it took to make
        it positive definite, and what stands for the part of K that a low rank leaves out.
    seed_ : int
        The seed in use.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where alpha is 0 and K is zero, or, with at least n features, where K is singular, as it is
        where rows of X are equal. Other strategies add a nugget.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import cg
    >>> from powersketch import SketchPreconditioner
    >>> from powersketch.kernels import Gaussian
    >>> X = np.random.default_rng(0).standard_normal((60, 500))
    >>> kernel = Gaussian(gamma=1e-3)
    >>> M = SketchPreconditioner(X, kernel, alpha=1e-3, random_state=0)
    >>> M.describe()
    'sketched-data, exact kernel of 180 sketched coordinates: Cholesky factor in float64'
    >>> K = kernel(X) + 1e-3 * np.eye(60)
    >>> x, info = cg(K, np.ones(60), rtol=1e-8, maxiter=40, M=M)
    >>> info, bool(np.allclose(K @ x, 1.0))
    (0, True)
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel | str,
        alpha: float = 0.0,
        *,
        strategy: str = "auto",
        n_components: int | None = None,
        landmarks: str = "leverage",
        matrix: NDArray[Any] | None = None,
        map: FeatureMap | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        kernel = as_kernel(kernel)
        alpha = checked_alpha(alpha)
        one_of("strategy", strategy, ("auto", *STRATEGIES))
        one_of("landmarks", landmarks, LANDMARKS)
        if n_components is not None:
            checked_integer("n_components", n_components, 1)
        thread_count(n_jobs)
        checked_verbose(verbose)
        X = checked_rows(X)
        kernel = kernel.resolve(X)
        _check_matrix(matrix, X.shape[0])
        super().__init__(np.dtype(np.float64), (X.shape[0], X.shape[0]))
        self.strategy_ = _chosen_strategy(X) if strategy == "auto" else strategy
        _refuse_unused(self.strategy_, landmarks, matrix, map)
        self.seed_ = seed_from(random_state)
        progress = Progress(f"{type(self).__name__}, {self.strategy_}", 1, verbose, unit="factors")
        streams = RandomStreams(self.seed_, "SketchPreconditioner")
        if self.strategy_ == "sketched-data":
            built = sketched_data(X, kernel, alpha, n_components, streams, n_jobs)
        elif self.strategy_ == "features":
            sketch = fitted_map(X, kernel, n_components, map, streams, n_jobs, verbose)
            diagonal = kernel.diagonal(X).astype(np.float64)
            built = feature_approximation(sketch.transform(X), diagonal, alpha, streams, n_jobs)
        else:
            built = nystroem(X, kernel, alpha, n_components, landmarks, streams, n_jobs, matrix)
        progress.update(1)
        self._use(built)

    def root(self) -> TriangularFactor:
        """Return R such that R Rᵀ is this operator, as gradient methods need it.

        Returns
        -------
        TriangularFactor
            A SciPy ``LinearOperator`` of shape (n, n).

        Raises
        ------
        ValueError
            Where the inverse is of low rank plus a nugget.
        """
        if isinstance(self._inverse, LowRankInverse):
            raise InputError(
                f"a preconditioner of rank {self.n_components_} has no triangular root; allowed "
                f"are 'sketched-data' and at least {self.shape[0]} features, one per row."
            )
        return self._inverse.root()

    def describe(self) -> str:
        """Return in a few words what the preconditioner is."""
        return f"{self.strategy_}, {self._text}"

    def _use(self, built: Approximation) -> None:
        self._inverse, self._text = built.inverse, built.text
        self.n_components_, self.nugget_ = built.n_components, built.nugget

    def _matvec(self, vector: Any) -> Any:
        return self._inverse.matvec(np.reshape(vector, -1))

    def _matmat(self, V: Any) -> Any:
        return self._inverse.matmat(V)

    def _adjoint(self) -> Self:
        return self

    def _transpose(self) -> Self:
        return self


def _refuse_unused(strategy: str, landmarks: str, matrix: Any, map: FeatureMap | None) -> None:
    """Refuse what belongs to another strategy than the one in use."""
    why = f"with the strategy {strategy!r}; it is for strategy="
    if strategy != "nystroem":
        refuse_unless_default("landmarks", landmarks, "leverage", f"{why}'nystroem'")
        if matrix is not None:
            # The matrix itself is too large for a message.
            refuse_unless_default("matrix", type(matrix), None, f"{why}'nystroem'")
    if strategy != "features":
        refuse_unless_default("map", map, None, f"{why}'features'")


def _check_matrix(matrix: Any, rows: int) -> None:
    shape = getattr(matrix, "shape", None)
    if matrix is not None and shape != (rows, rows):
        raise InputError(
            f"matrix has shape {shape}; allowed is ({rows}, {rows}), as X has {rows} rows: give "
            "kernel(X) or None."
        )


def _chosen_strategy(X: Rows) -> str:
    rows = X.shape[0]
    if rows <= _FEW_ROWS or (rows <= _MANY_ROWS and row_length(X) >= 2 * rows):
        return "sketched-data"
    return "nystroem"

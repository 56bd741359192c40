"""Preconditioners of kernel systems: sketches, or a factor of the matrix itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Rows
from powersketch.docstrings import documented
from powersketch.exceptions import InputError
from powersketch.execution import Progress
from powersketch.feature_maps import FeatureMap
from powersketch.kernel_systems.approximations import (
    LANDMARKS,
    bytes_of_nystroem,
    default_rank,
    feature_approximation,
    nystroem,
    row_length,
    sketched_data,
)
from powersketch.kernels import Kernel
from powersketch.linalg import (
    CholeskyFactor,
    KernelOperator,
    LowRankInverse,
    SymmetricOperator,
    TriangularFactor,
)
from powersketch.parameters import (
    checked_integer,
    checked_verbose,
    one_of,
    refuse_unless_default,
)
from powersketch.random_streams import RandomStreams, seed_from

STRATEGIES = ("sketched-data", "features", "nystroem")
# Up to here a factorisation is a matter of a second.
_FEW_ROWS = 4000
# Up to here, factoring the stored matrix takes less time than the steps that it saves.
_FACTORED_ROWS = 8000
# One in float32 whose factor has to be in float64 takes as much as three.
_MATRICES_IF_FACTORED = 3
# Rows longer than their number are compressed; but two matrices of more rows than this fill the
# memory.
_MANY_ROWS = 20_000


@documented
class SketchPreconditioner(SymmetricOperator):
    r"""An approximate inverse of the kernel matrix :math:`K + \alpha I`.

    A symmetric positive definite SciPy ``LinearOperator`` in float64: give it to
    :func:`powersketch.linalg.conjugate_gradients` or, as ``M``, to ``scipy.sparse.linalg.cg``.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n, d)
        Finite real numbers, rows are samples. They are left as they are.
    kernel : powersketch.kernels.Kernel or str
        The kernel whose matrix is to be inverted, or its name for
        :func:`powersketch.kernels.as_kernel`.
    alpha : float, default=0.0
        Added to the diagonal of K; not negative.
    strategy : {"auto", "sketched-data", "features", "nystroem"}, default="auto"
        What stands in for K.

        - "sketched-data": the exact kernel matrix of compressed rows, by a Cholesky factor. Needs
          memory for n² numbers; best where rows are longer than their number.
        - "features": Z Zᵀ for the features Z of a sketch. With at least n features, the
          triangular factor of [SWYZ21], Algorithm 2; with fewer, Woodbury's identity.
        - "nystroem": a Nyström approximation. Needs memory for n numbers per component.
        - "auto": "sketched-data" up to 4000 rows, and up to 20,000 if they have at least 2n
          entries each; else "nystroem".
    n_components : int, default=None
        The number of coordinates, of features, or of landmarks, at least 1. None takes 3 n
        coordinates (all d, if the rows have fewer entries), 4 n features, or n / 12 landmarks, but
        from 100 to 2000.
    landmarks : {"leverage", "approximate-leverage", "uniform", "range-finder"}, default="leverage"
        Only for "nystroem": rows drawn as in :class:`powersketch.LeverageNystroem`, or random
        mixtures of all rows. Mixtures approximate K better, but take a product with K.
    matrix : ndarray of shape (n, n), default=None
        K itself, without alpha, if it is known already. Only for "nystroem", which then
        takes its columns from there.
    map : feature map, default=None
        Only for "features": a feature map of the kernel. A copy of it is fitted, with a seed from
        `random_state` unless it has its own. None is the sketch of this package for the kernel.
    %(random_state)s
    %(n_jobs)s
    %(verbose)s

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
        one_of("strategy", strategy, ("auto", *STRATEGIES))
        one_of("landmarks", landmarks, LANDMARKS)
        if n_components is not None:
            checked_integer("n_components", n_components, 1)
        checked_verbose(verbose)
        system = KernelOperator(kernel, X, alpha, memory_budget=0, n_jobs=n_jobs)
        _check_matrix(matrix, system.shape[0])
        super().__init__(system.shape[0])
        self.strategy_ = _chosen_strategy(system.X) if strategy == "auto" else strategy
        _refuse_unused(self.strategy_, landmarks, matrix, map)
        self.seed_ = seed_from(random_state)
        progress = Progress(f"{type(self).__name__}, {self.strategy_}", 1, verbose, unit="factors")
        streams = RandomStreams(self.seed_, "SketchPreconditioner")
        if self.strategy_ == "sketched-data":
            approximation = sketched_data(system, n_components, streams)
        elif self.strategy_ == "features":
            _, approximation = feature_approximation(system, n_components, streams, verbose, map)
        else:
            approximation = nystroem(
                system.X,
                system.kernel,
                system.alpha,
                n_components,
                landmarks,
                streams,
                n_jobs,
                matrix,
            )
        progress.update(1)
        self._inverse, self._text = approximation.inverse, approximation.text
        self.n_components_, self.nugget_ = approximation.n_components, approximation.nugget

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

    def _matmat(self, V: Any) -> Any:
        return self._inverse.matmat(V)


def is_factored(operator: KernelOperator) -> bool:
    """Return whether the matrix is stored, and so small that it is factored."""
    return operator.stored != "nothing" and operator.shape[0] <= _FACTORED_ROWS


def bytes_of_matrix(rows: int, memory: float) -> int:
    """Return what K may take of so much, beside its factor or the least of preconditioners."""
    if rows <= _FACTORED_ROWS:
        return int(memory / _MATRICES_IF_FACTORED)
    return int(max(memory - bytes_of_nystroem(rows, default_rank(rows, 0.0)), 0.0))


def exact_preconditioner(
    operator: KernelOperator,
    preconditioner: Any = "auto",
    *,
    n_components: int | None = None,
    seed: int,
    verbose: int = 0,
) -> Any:
    """Return the given preconditioner, or the one of a name.

    "auto" factors the matrix where it is stored and small, unless a number of components asks for
    a sketch of that size, and else takes a Nyström approximation.
    """
    if not isinstance(preconditioner, str):
        return preconditioner
    if preconditioner == "auto":
        factored = is_factored(operator) and n_components is None
        preconditioner = "cholesky" if factored else "nystroem"
    if preconditioner == "none":
        return None
    if preconditioner == "cholesky":
        return _cholesky(operator)
    # On images, leverage scores save a twentieth of the steps and cost more time than all of them.
    options: dict[str, Any] = {"landmarks": "uniform", "matrix": operator.matrix}
    return SketchPreconditioner(
        operator.X,
        operator.kernel,
        operator.alpha,
        strategy=preconditioner,
        n_components=n_components,
        **(options if preconditioner == "nystroem" else {}),
        random_state=seed,
        n_jobs=operator.n_jobs,
        verbose=verbose,
    )


def _cholesky(operator: KernelOperator) -> CholeskyFactor:
    """Return the factor of the stored matrix, of which it takes a copy."""
    if operator.matrix is None:
        raise InputError(
            f"preconditioner='cholesky' needs the kernel matrix, and its {operator.shape[0]}² "
            "entries do not fit memory_budget: use a larger one, or "
            "preconditioner='sketched-data'."
        )
    return CholeskyFactor(operator.matrix, alpha=operator.alpha, dtype=operator.X.dtype)


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

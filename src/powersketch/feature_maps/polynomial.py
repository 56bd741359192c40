"""PolynomialSketch: explicit features for the polynomial kernel of any degree."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from powersketch.feature_maps.augmented_rows import AugmentedRows
from powersketch.feature_maps.batches import (
    Progress,
    entry_variance,
    thread_count,
    transform_rows,
)
from powersketch.feature_maps.direct import DirectMap
from powersketch.feature_maps.exact import ExactMap
from powersketch.feature_maps.mean_split import MeanDirection, SplitMap, column_sums
from powersketch.feature_maps.parameters import (
    integer_at_least,
    internal_length,
    one_of,
    true_or_false,
)
from powersketch.feature_maps.row_maps import RowMap
from powersketch.feature_maps.selection import best_map, pilot_rows
from powersketch.kernels import Polynomial
from powersketch.native import Real, Rows, is_sparse
from powersketch.powers import monomial_count
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.sketches import BASE_SKETCHES

_METHODS = ("power",)
_EXPANSIONS = ("auto", "mean", "none")
_ACCEPTED = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
_SMALLEST_SPLIT = 3  # degree 0, and two features for all the rest


class PolynomialSketch(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features Z with Z Zᵀ ≈ K for the polynomial kernel (gamma ⟨x, y⟩ + coef0)^degree.

    The power x^⊗degree is sketched by repeated squaring with one base sketch T and one pair sketch
    S, so the time grows with the logarithm of the degree only (Algorithm 1 of [1]_). Beyond the
    paper, every intermediate power is rescaled to its known norm, and the kernel is expanded
    around the mean of the data where that lowers the error. In the project's benchmarks the two
    steps together lower the error of the literal algorithm by factors of 3 to 70.

    Parameters
    ----------
    degree : int, default=2
        Degree of the kernel, at least 1.
    gamma : float or "scale", default=1.0
        Positive factor of the inner product; "scale" is 1 / (n_features · variance of X).
    coef0 : float, default=0
        Non-negative constant term.
    n_components : int, default=100
        Number of features.
    method : {"power"}, default="power"
        How powers are sketched: "power" is repeated squaring.
    base_sketch : {"auto", "srht", "countsketch", "osnap", "gaussian"}, default="auto"
        T, where rows are longer than the internal length. "auto" is "srht" if `fit` sees dense rows
        and "osnap" if it sees sparse ones.
    expansion : {"auto", "mean", "none"}, default="auto"
        "mean" expands the kernel around the mean of the rows given to `fit`; "none" does not look
        at the data; "auto" measures both on a sample of the rows and keeps the better (and is
        "none" if `norm_preserving` is False). If all monomials fit into `n_components`, every
        setting takes them, and the features are exact.
    norm_preserving : bool, default=True
        Whether every power is rescaled to its exact norm, which makes the diagonal of Z Zᵀ exact.
        False gives the paper's linear sketch of x^⊗degree.
    internal_components : int or None, default=None
        Length of intermediate powers, rounded up to a power of two; None takes the first power of
        two not below `n_components`. Twice or four times as much lowers the error of high degrees a
        little.
    random_state : int, RandomState instance or None, default=None
        An int gives the same bits on every machine, for every number of threads and every split of
        the rows into batches.
    n_jobs : int or None, default=None
        Number of threads, with scikit-learn's meaning: None is 1, -1 all processors.
    verbose : int, default=0
        Whether long transforms report their progress on standard error.

    Attributes
    ----------
    kernel_ : powersketch.kernels.Polynomial
        The exact kernel that the features approximate.
    gamma_ : float
        The factor in use.
    seed_ : int
        The seed that all random numbers come from.
    expansion_ : {"mean", "none", "exact"}
        What was chosen.
    n_components_ : int
        Number of features.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns seen by `fit`, if they had string names.

    Notes
    -----
    A row whose kernel value (gamma ‖x‖² + coef0)^degree exceeds the dtype's range is refused with a
    ValueError; one whose value is too small for it becomes zero. Columns that are not needed
    (exact features can be fewer than `n_components`) are zero.

    References
    ----------
    .. [1] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import PolynomialSketch
    >>> X = np.random.RandomState(0).rand(200, 50)
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> sketch = PolynomialSketch(degree=8, coef0=1, n_components=512, random_state=0)
    >>> Z = sketch.fit_transform(X)
    >>> K = sketch.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.05 * np.linalg.norm(K))
    True
    """

    def __init__(
        self,
        degree: int = 2,
        *,
        gamma: float | str = 1.0,
        coef0: float = 0,
        n_components: int = 100,
        method: str = "power",
        base_sketch: str = "auto",
        expansion: str = "auto",
        norm_preserving: bool = True,
        internal_components: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.n_components = n_components
        self.method = method
        self.base_sketch = base_sketch
        self.expansion = expansion
        self.norm_preserving = norm_preserving
        self.internal_components = internal_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the sketch; look at up to 512 rows if the expansion is chosen from the data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.
        y : ignored
            Present for pipelines.

        Returns
        -------
        self : PolynomialSketch
            The fitted map.
        """
        del y
        self._check_parameters()
        given = X
        X = _without_duplicates(check_array(X, **_ACCEPTED, estimator=self, input_name="X"))
        seed = seed_from(self.random_state)
        kernel = Polynomial(self.degree, self._resolve_gamma(X), self.coef0)
        row_map = self._choose_map(X, kernel, seed)
        # Nothing is stored before everything is known: a failed fit leaves the last one intact.
        validate_data(self, given, skip_check_array=True)
        self.seed_, self.kernel_, self.gamma_ = seed, kernel, kernel.gamma
        self.n_components_ = int(self.n_components)
        self._row_map, self.expansion_ = row_map, row_map.name
        return self

    def transform(self, X: Any) -> Real:
        """Return the features of every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            float32 for float32 rows, else float64.
        """
        check_is_fitted(self)
        threads = thread_count(self.n_jobs)
        # Whether all entries are finite, the norms of the rows will tell.
        X = validate_data(self, X, **_ACCEPTED, reset=False, ensure_all_finite=False)
        X = _without_duplicates(X)
        progress = Progress(type(self).__name__, X.shape[0], self.verbose)
        return transform_rows(
            self._row_map, X, self.n_components_, threads=threads, progress=progress
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_parameters(self) -> None:
        integer_at_least("degree", self.degree, 1, "a polynomial kernel has a whole degree")
        size = integer_at_least("n_components", self.n_components, 1, "100 is the default")
        one_of("method", self.method, _METHODS)
        one_of("base_sketch", self.base_sketch, ("auto", *BASE_SKETCHES))
        one_of("expansion", self.expansion, _EXPANSIONS)
        true_or_false("norm_preserving", self.norm_preserving)
        internal_length(self.internal_components, size)
        if isinstance(self.gamma, str):
            one_of("gamma", self.gamma, ("scale",))
        # The kernel refuses what is no polynomial kernel before any data is touched.
        Polynomial(self.degree, 1.0 if isinstance(self.gamma, str) else self.gamma, self.coef0)
        thread_count(self.n_jobs)

    def _resolve_gamma(self, X: Rows) -> float:
        """Return gamma, or scikit-learn's "scale" from sums that are the same on every machine."""
        if isinstance(self.gamma, numbers.Real):
            return float(self.gamma)
        variance = entry_variance(X)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    def _choose_map(self, X: Rows, kernel: Polynomial, seed: int) -> RowMap:
        rows, columns, size = AugmentedRows.of(kernel), X.shape[1], int(self.n_components)
        if self.norm_preserving and (
            monomial_count(columns + rows.extra_columns, rows.degree) <= size
        ):
            return ExactMap.of(rows, columns)
        streams = RandomStreams(seed, "polynomial")
        base_sketch = self.base_sketch
        if base_sketch == "auto":
            base_sketch = "osnap" if is_sparse(X) else "srht"
        options: dict[str, Any] = {
            "internal": internal_length(self.internal_components, size),
            "base_sketch": base_sketch,
            "preserve_norms": bool(self.norm_preserving),
        }
        direct = DirectMap.draw(streams, rows, columns, size, **options)
        if self.expansion == "none" or (self.expansion == "auto" and not self.norm_preserving):
            return direct
        pilot = pilot_rows(X, streams)
        rows.check_representable(pilot, rows.squared_norms(pilot, 1))
        mean = column_sums(pilot, np.full(pilot.shape[0], 1.0 / pilot.shape[0]))
        centre = MeanDirection.of_mean(rows, mean)
        if centre is None or size < _SMALLEST_SPLIT:
            return direct
        split = SplitMap.draw(streams, centre, pilot, size, **options)
        maps: list[RowMap] = [split] if self.expansion == "mean" else [direct, split]
        return best_map(maps, pilot, size, kernel)


def _without_duplicates(X: Rows) -> Rows:
    """Return sparse rows whose every entry is stored once: norms are sums over the entries."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X

"""LeverageNystroem: features from the exact kernel with landmarks among the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.accuracy import Certificate, divided_positions, grown_size
from powersketch.arrays import Real, Rows, Vector
from powersketch.docstrings import documented
from powersketch.ecosystem import DocumentationLinks, in_library_of
from powersketch.engines import elsewhere_too
from powersketch.exceptions import RangeWarning, warn_user
from powersketch.execution import Progress, blas_threads, thread_count_of_blocks
from powersketch.feature_maps import (
    DO_NOT_COUNT,
    MOST_CHOICE_ROWS,
    ChoiceRows,
    absurd_rows,
    are_many,
    outlying,
    without_rows,
)
from powersketch.kernels import EntryMoments, Kernel, as_kernel, asks_for_scale, at_scale
from powersketch.nystroem.features import NystroemFeatures
from powersketch.nystroem.scores import LANDMARKS, Indices, draw_landmarks, precise_diagonal
from powersketch.parameters import (
    checked_non_negative,
    checked_positive,
    checked_size,
    checked_verbose,
    one_of,
    refuse_unused,
)
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.storable import storable
from powersketch.validation import REAL_ROWS, checked_rows, sound_array

# A row whose k(x, x) is this many times the usual one drowns all others in rounding errors.
_ABSURD = 1e8
# Features lack much more of k(x, x) than those of rows like the fit's if the share is above these
# many times the usual one, plus some. A few rows by themselves may lack more by chance.
_TIMES_AS_MUCH, _SOME = 1.25, 0.1
_FEW_ROWS, _OF_FEW_ROWS = 8, 0.9
_FEWEST_COMPARED = 20
_MOST_COMPARED = 512
# Of very many rows, at least this many for every landmark are looked at.
_ROWS_PER_LANDMARK = 4


class _Landmarks(NamedTuple):
    """Landmarks: which rows they are, their scores, and the features that they give."""

    indices: Indices
    scores: Vector
    features: NystroemFeatures


@storable
@documented
class LeverageNystroem(
    DocumentationLinks, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Features Z with Z Zᵀ ≈ K from the kernel's values at landmarks among the rows.

    For landmarks L and the Cholesky factor k(L, L) = RᵀR the features are Z = k(X, L) R⁻¹, so that
    Z Zᵀ is the Nyström approximation: exact on the landmarks, and never above K. Unlike the
    sketches it looks at the data, and is more accurate than they are at equal size where the
    spectrum of K decays fast; it costs n · n_components values of the kernel and n · n_components²
    operations more.

    Landmarks are drawn by ridge leverage scores, which are small for rows that others can stand
    for, and large for rows that nothing else explains. Uniform landmarks miss small clusters.

    Parameters
    ----------
    kernel : powersketch.kernels.Kernel or str, default="gaussian"
        The kernel, with its parameters, or its name for :func:`powersketch.kernels.as_kernel`;
        "gaussian" has gamma = 1 / (n_features · variance of X). Rows that are more than 300 times
        as far from the centre as is typical do not count in it, with an OutlierWarning.
    n_components : int or "auto", default=100
        Number of landmarks and of features. Where X has fewer rows, all of them are landmarks,
        with a warning, and Z Zᵀ = K up to the jitter. "auto" takes about as few as it needs for
        the error `eps`; up to 3000 rows that it measures on, at most half of all, are not landmarks
        then, so that the error is that of new rows, and the other rows are copied.
    landmarks : {"leverage", "approximate-leverage", "uniform"}, default="leverage"
        What landmarks are drawn by: recursive ridge leverage scores [1]_; those of a first
        approximation by columns drawn in proportion to the diagonal of K [2]_; equal probabilities.
        Scores are estimated from 512 columns of K at most, whatever `n_components` is: more
        columns cost time and hardly change which rows are drawn.
    alpha : float or None, default=None
        The ridge of the scores, positive. None takes what the k = n_components / (4 ln
        n_components) leading eigenvalues leave, divided by k [1]_.
    jitter : float or None, default=None
        What is added to the diagonal of k(L, L), relative to the diagonal's mean, so that equal
        or nearly dependent landmarks do no harm; relative to each entry where a few are absurdly
        large. None is 1e-10 if `fit` sees float64 and 1e-6 if it sees float32. Where it does not
        suffice it grows by factors of 10.
    eps : float or None, default=None
        With n_components="auto", and only then: the relative error ‖Z Zᵀ − K‖ / ‖K‖ to keep, in
        Frobenius norms both over pairs of different rows and over all entries, between 0 and 1.
    random_state : int, RandomState instance or None, default=None
        An int gives the same landmarks and features again on the same machine, bit for bit and for
        any number of threads. As scores rest on BLAS, another machine may round them differently
        and draw other landmarks.
    n_jobs : int or None, default=None
        Number of threads, with scikit-learn's meaning: None is 1, -1 all processors. 1 stands for
        as many as BLAS is set to use. No bit depends on it. The features of a row are the same to
        the last bit whatever rows are transformed with it and in which order, as far as BLAS rounds
        a row of a product the same wherever in a block it stands: OpenBLAS does so in float64, and
        on processors with AVX-512 in float32.
    %(verbose)s

    Attributes
    ----------
    kernel_ : powersketch.kernels.Kernel
        The exact kernel that the features approximate.
    landmark_indices_ : ndarray of shape (n_landmarks,)
        Which rows of X are landmarks, ascending.
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        These rows.
    scores_ : ndarray of shape (n_landmarks,)
        Their estimated leverage scores, in [0, 1]; one where all rows are landmarks, and
        `n_components_` over the number of rows where they were drawn uniformly.
    jitter_ : float
        The relative jitter in use.
    seed_ : int
        The seed that all random numbers come from.
    factor_ : ndarray of shape (n_landmarks, n_landmarks)
        The lower triangular Cholesky factor Rᵀ of k(L, L), jitter included.
    n_components_ : int
        Number of features: `n_components`, or n_samples if that is smaller.
    certificate_ : powersketch.accuracy.Certificate
        What was measured at this number of features; only where it was chosen for `eps`.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns seen by `fit`, if they had string names.

    References
    ----------
    .. [1] C. Musco, C. Musco, "Recursive Sampling for the Nyström Method", NIPS 2017.
    .. [2] A. Alaoui, M. Mahoney, "Fast Randomized Kernel Ridge Regression with Statistical
       Guarantees", NIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import LeverageNystroem
    >>> from powersketch.kernels import Gaussian
    >>> X = np.random.RandomState(0).rand(300, 3)
    >>> nystroem = LeverageNystroem(Gaussian(gamma=1.0), n_components=60, random_state=0)
    >>> Z = nystroem.fit_transform(X)
    >>> Z.shape
    (300, 60)
    >>> K = nystroem.kernel_(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 1e-3 * np.linalg.norm(K))
    True
    """

    kernel_: Kernel
    seed_: int
    n_components_: int
    _features: NystroemFeatures

    def __init__(
        self,
        kernel: Kernel | str = "gaussian",
        *,
        n_components: int | str = 100,
        landmarks: str = "leverage",
        alpha: float | None = None,
        jitter: float | None = None,
        eps: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.alpha = alpha
        self.jitter = jitter
        self.eps = eps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @elsewhere_too
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks and factor their kernel matrix.

        Of very many rows, landmarks are drawn among a sample of 65,536, or four times as many as
        there are landmarks: the same for an array in memory and for a Dask array.

        Parameters
        ----------
        X : array, sparse matrix, or Dask array or DataFrame of shape (n_samples, n_features)
            The rows, some of which become landmarks.
        y : None
            Ignored; pipelines pass it.

        Returns
        -------
        self : LeverageNystroem
            The estimator, fitted.
        """
        del y
        return self._fit(X)

    def _fit(self, X: Any, moments: EntryMoments | None = None) -> Self:
        """Fit rows in memory; those that they were taken from may have other moments."""
        self._check_before_fit()
        rows, kernel = checked_rows(X, estimator=self), at_scale(self._exact_kernel(), moments)
        if are_many(rows.shape[0], self._most_rows_in_view):
            scale = asks_for_scale(kernel)
            chosen = ChoiceRows.of_all(rows, self._most_rows_in_view, measure=scale)
            chosen.warn_of_far_rows(DO_NOT_COUNT)
            return self._fit_chosen(X, replace(chosen, moments=moments or chosen.moments))
        return self._fit_rows(X, kernel.resolve(without_rows(rows, absurd_rows(rows))), rows)

    def _fit_chosen(self, given: Any, chosen: ChoiceRows) -> Self:
        """Fit rows that stand for all; some rows as they were `given` tell names of columns."""
        kernel = at_scale(self._exact_kernel(), chosen.moments).resolve(chosen.ordinary)
        return self._fit_rows(given, kernel, chosen.rows, chosen.numbers)

    def _fit_rows(
        self, given: Any, kernel: Kernel, X: Rows, numbers: Indices | None = None
    ) -> Self:
        """Draw landmarks among these rows, which have these numbers among all."""
        threads, seed = thread_count_of_blocks(self.n_jobs), seed_from(self.random_state)
        streams = RandomStreams(seed, "leverage_nystroem")
        # Several threads of BLAS round differently, and scores near each other change places.
        with blas_threads(1):
            diagonal = None if self.landmarks == "uniform" else precise_diagonal(kernel, X)
            landmarks, certificate = self._choose(kernel, X, diagonal, streams, threads)
        # Nothing is stored before everything is known: a failed fit leaves the last one intact.
        validate_data(self, given, skip_check_array=True)
        self.seed_, self.kernel_, self._features = seed, kernel, landmarks.features
        self.landmark_indices_, self.scores_ = landmarks.indices, landmarks.scores
        if numbers is not None:
            self.landmark_indices_ = numbers[landmarks.indices]
        self.landmarks_, self.jitter_ = landmarks.features.landmarks, landmarks.features.jitter
        self.n_components_ = landmarks.indices.size
        self._usual_loss = _UsualLoss.of(X, diagonal, landmarks)
        # The certificate of an earlier fit says nothing about this one.
        self.__dict__.pop("certificate_", None)
        if certificate is not None:
            self.certificate_ = certificate
        return self

    @elsewhere_too
    def transform(self, X: Any) -> Any:
        """Return the features of every row.

        Parameters
        ----------
        X : array, sparse matrix, or Dask array or DataFrame of shape (n_samples, n_features)
            Rows are samples.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_landmarks)
            float32 for float32 rows, else float64. For rows of another array library in main
            memory, with ``sklearn.set_config(array_api_dispatch=True)``, an array of that library.
            Of Dask collections, a lazy Dask array.
        """
        check_is_fitted(self)
        rows = self._checked_new_rows(X)
        threads = thread_count_of_blocks(self.n_jobs)
        progress = Progress(type(self).__name__, rows.shape[0], self.verbose)
        Z = self._features.transform(rows, threads, progress)
        self._check_range(rows, Z)
        return in_library_of(X, Z, self)

    def _check_range(self, X: Rows, Z: Real) -> None:
        """Warn of rows whose features lack much more of the diagonal than those of fit."""
        lost = _mean_loss(precise_diagonal(self.kernel_, X), Z)
        usual = self._usual_loss.share
        much = _TIMES_AS_MUCH * usual + _SOME
        if lost > (much if X.shape[0] >= _FEW_ROWS else max(much, _OF_FEW_ROWS)):
            warn_user(
                f"the rows are so unlike the landmarks that their features lack {lost:.0%} of the "
                f"kernel's diagonal, where rows like those given to fit lack {usual:.0%}"
                ": fit on rows like these, or use a map without landmarks.",
                RangeWarning,
            )

    def kernel_columns(self) -> Callable[[Any], Real]:
        """Return the function from rows to the kernel's values at the landmarks.

        The landmarks are prepared once for all calls. Features are the values times a fixed
        matrix: ``transform(X)`` is C R⁻¹ with C = ``kernel_columns()(X)`` and R = ``factor_.T``.

        Returns
        -------
        callable
            From X of shape (n_samples, n_features) to `k(X, landmarks_)`, of shape (n_samples,
            n_landmarks): in float32 if rows are float32 and that is accurate enough to solve for
            features, else in float64.
        """
        check_is_fitted(self)
        values = self._features.columns(thread_count_of_blocks(self.n_jobs))
        return lambda X: values(self._checked_new_rows(X))

    @property
    def _most_rows_in_view(self) -> int:
        """How many rows landmarks are drawn among where there are very many."""
        if isinstance(self.n_components, str):
            return MOST_CHOICE_ROWS
        return max(MOST_CHOICE_ROWS, _ROWS_PER_LANDMARK * int(self.n_components))

    def component_range(self, rows: int) -> tuple[int, int]:
        """Return the smallest and the largest number of components on this many rows."""
        return 1, rows

    @property
    def factor_(self) -> Real:
        """The lower triangular Cholesky factor Rᵀ of the landmarks' kernel matrix."""
        check_is_fitted(self)
        return self._features.solver.factor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checked_new_rows(self, X: Any) -> Rows:
        return validate_data(self, sound_array("X", X), **REAL_ROWS, reset=False)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _choose(
        self, kernel: Kernel, X: Rows, diagonal: Vector | None, streams: RandomStreams, threads: int
    ) -> tuple[_Landmarks, Certificate | None]:
        """Return the landmarks, and a certificate if their number was measured."""
        draw = partial(self._draw, kernel, streams=streams, threads=threads)
        if self.n_components != "auto":
            size, rows = int(self.n_components), X.shape[0]
            if size > rows:
                warn_user(
                    f"n_components={size} exceeds the {rows} rows of X: all rows are landmarks, "
                    f"and there are {rows} features."
                )
            return draw(X, diagonal, size), None
        measured, candidates = divided_positions(X.shape[0], streams)
        others, entries = X[candidates], None if diagonal is None else diagonal[candidates]
        size, certificate = grown_size(
            lambda size: draw(others, entries, size).features,
            X[measured],
            float(self.eps or 0.0),
            streams.child("automatic_size"),
            sizes=self.component_range(candidates.size),
            given=X,
            n_jobs=threads,
        )
        landmarks = draw(others, entries, size)
        return landmarks._replace(indices=candidates[landmarks.indices]), certificate

    def _draw(
        self,
        kernel: Kernel,
        X: Rows,
        diagonal: Vector | None,
        size: int,
        *,
        streams: RandomStreams,
        threads: int,
    ) -> _Landmarks:
        """Draw this many landmarks among the rows.

        Rows with an absurd k(x, x) are landmarks in any case, as nothing else explains them, and
        are left out of the scores: beside them, all other rows would look alike.
        """
        absurd = np.empty(0, np.intp) if diagonal is None else outlying(diagonal, _ABSURD)
        if absurd.size >= min(size, X.shape[0]):
            absurd = absurd[:0]
        usual = np.delete(np.arange(X.shape[0]), absurd)
        drawn, scores = draw_landmarks(
            kernel,
            X[usual] if absurd.size else X,
            size - absurd.size,
            streams,
            landmarks=self.landmarks,
            alpha=self.alpha,
            threads=threads,
            diagonal=None if diagonal is None else diagonal[usual],
        )
        indices = np.concatenate((usual[drawn], absurd))
        order = np.argsort(indices)
        scores = np.concatenate((scores[drawn], np.ones(absurd.size)))[order]
        jitter = None if self.jitter is None else float(self.jitter)
        features = NystroemFeatures.of(kernel, X[indices[order]], jitter, threads, self.verbose)
        return _Landmarks(indices[order], scores, features)

    def _exact_kernel(self) -> Kernel:
        """Return the kernel that is asked for, its gamma still to be resolved."""
        return as_kernel(self.kernel)

    def _check_before_fit(self) -> None:
        """Refuse bad parameters before any data is touched."""
        checked_size(self.n_components, self.eps)
        one_of("landmarks", self.landmarks, LANDMARKS)
        if self.alpha is not None:
            checked_positive("alpha", self.alpha, remedy="None takes one that suits n_components")
        if self.jitter is not None:
            checked_non_negative("jitter", self.jitter, reason="or None for 1e-10 or 1e-6")
        if self.landmarks == "uniform":
            refuse_unused(self, {"alpha": "with landmarks='uniform', which takes no scores"})
        checked_verbose(self.verbose)


def _mean_loss(diagonal: Vector, Z: Real) -> float:
    """Return what share of k(x, x) the features of a row do not have, in the mean over the rows."""
    squares = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
    shares = np.divide(squares, diagonal, out=np.ones_like(diagonal), where=diagonal > 0.0)
    return float(np.mean(1.0 - shares))


@storable
@dataclass(frozen=True, eq=False)
class _UsualLoss:
    """What features lack of k(x, x), in the mean over rows like those given to fit.

    `rows` are some that are not landmarks, with their k(x, x) where these are known. The features
    of them are only computed when others are compared with them.
    """

    features: NystroemFeatures
    rows: Rows
    diagonal: Vector | None

    @classmethod
    def of(cls, X: Rows, diagonal: Vector | None, landmarks: _Landmarks) -> Self:
        """Take some rows, evenly spaced."""
        others = np.delete(np.arange(X.shape[0]), landmarks.indices)
        most = min(len(others), _MOST_COMPARED)
        rows = others[np.linspace(0, len(others) - 1, most).astype(np.int64)]
        return cls(landmarks.features, X[rows], None if diagonal is None else diagonal[rows])

    @cached_property
    def share(self) -> float:
        """The mean share; all of it where there are too few rows to tell."""
        if self.rows.shape[0] < _FEWEST_COMPARED:
            return 1.0
        known = self.diagonal
        diagonal = precise_diagonal(self.features.kernel_, self.rows) if known is None else known
        return _mean_loss(diagonal, self.features.transform(self.rows))

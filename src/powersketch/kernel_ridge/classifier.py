"""SketchedKernelRidgeClassifier: classification by ridge regression on ±1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from powersketch.arrays import Float64, Real, Vector
from powersketch.docstrings import documented
from powersketch.engines import elsewhere_too
from powersketch.exceptions import InputError, warn_user
from powersketch.kernel_ridge.base import SketchedRidge
from powersketch.kernel_ridge.rows.training_rows import (
    KnownTargets,
    TrainingRows,
    check_some_weight,
    checked_weights,
)
from powersketch.kernel_ridge.solving.left_out import LeftOut
from powersketch.kernels import Kernel
from powersketch.storable import storable
from powersketch.validation import checked_rows, sound_array

# Logarithms of the power and the floor of probabilities, and their bounds.
_FIRST_LOGARITHMS = (1.0, -2.0)
_LOGARITHMS = ((-3.0, 5.0), (-12.0, 2.0))
_LEAST_CHANCE = 1e-12


@storable
@documented
class SketchedKernelRidgeClassifier(ClassifierMixin, SketchedRidge):
    """Classification by kernel ridge regression: one target of ±1 for every class.

    Without a parameter, it chooses columns, kernel, metric and features for the data, and says
    what it chose and why in `choice_`. For two classes there is one target, −1 for the first class
    and +1 for the second. A row belongs to the class of the largest prediction.

    Parameters
    ----------
    %(ridge_model)s
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the rows of every class, not negative; "balanced" divides by the
        number of rows of the class.
    %(ridge_options)s
    %(verbose)s

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray of shape (t, m); ndarray of shape (t,)
        The solution, where t is 1 for two classes, else their number; `coef_` on features only.
    %(ridge_attributes)s

    References
    ----------
    .. [SWYZ21] Z. Song, D. Woodruff, Z. Yu, L. Zhang, "Fast Sketching of Polynomial Kernels of
       Polynomial Degree", ICML 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from powersketch import SketchedKernelRidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SketchedKernelRidgeClassifier(random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    >>> model.predict_proba(X[1000:1002]).shape
    (2, 10)
    """

    _uses_left_out: ClassVar[bool] = True
    _iterates: ClassVar[bool] = True

    def __init__(
        self,
        kernel: str | Kernel = "auto",
        *,
        kernel_params: dict[str, Any] | None = None,
        features: Any = "auto",
        n_components: int | None = None,
        metric: str | None = "auto",
        linear: bool | str = "auto",
        scaling: str | None = "auto",
        clip: float | str | None = "auto",
        alpha: float | str = "loo",
        alphas: ArrayLike | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        eps: float = 0.1,
        tol: float = 1e-6,
        time_budget: float | None = None,
        memory_budget: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernel,
            kernel_params=kernel_params,
            features=features,
            n_components=n_components,
            metric=metric,
            linear=linear,
            scaling=scaling,
            clip=clip,
            alpha=alpha,
            alphas=alphas,
            solver=solver,
            fit_intercept=fit_intercept,
            eps=eps,
            tol=tol,
            time_budget=time_budget,
            memory_budget=memory_budget,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @elsewhere_too
    @documented
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the feature map and the ridge regression.

        Parameters
        ----------
        %(ridge_rows)s
        y : array of shape (n_samples,)
            Labels of at least two classes.
        %(ridge_weights)s

        Returns
        -------
        self : estimator
            The fitted classifier. A fit that fails leaves it as it was.
        """
        self._check_parameters()
        rows, labels = self._checked_labels(X, y)
        weights = checked_weights(sample_weight, rows)
        check_some_weight(weights)
        known = self._known_targets([self._seen_targets(labels, weights)])
        coded = self._coded_rows(rows, labels, weights, known)
        check_some_weight(coded.weights)
        self._fit_rows(coded, X, classes_=known.classes)
        return self

    @documented
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a block of rows; the first one fits the feature map.

        Parameters
        ----------
        %(ridge_rows)s
        y : array of shape (n_samples,)
            Labels.
        classes : array of shape (n_classes,), default=None
            All labels that may come, in the first call.
        %(ridge_weights)s

        Returns
        -------
        self : estimator
            The classifier, with the new rows.
        """
        self._check_parameters()
        self._check_partial()
        if self.class_weight == "balanced":
            raise InputError(
                "class_weight='balanced' needs all rows at once: in partial_fit, give a dict, or "
                "sample_weight."
            )
        rows, labels = self._checked_labels(X, y)
        known = self._known_classes(classes)
        _refuse_unknown(labels, known)
        factors = self._class_factors(known, np.empty(0))
        weights = checked_weights(sample_weight, rows)
        coded = self._coded_rows(rows, labels, weights, KnownTargets(known, factors))
        check_some_weight(coded.weights)
        self._add_rows(coded, X, classes_=known)
        return self

    @documented
    def fit_batches(
        self, batches: Iterable[Any], *, classes: ArrayLike | None = None, target: Any = None
    ) -> Self:
        """Fit in one pass over rows that do not fit into memory.

        Kernel, metric, landmarks and all other choices are made on the first batches, at least
        20,000 rows of them. Shuffle the rows if they have an order. If there are no more rows, the
        fit is that of :meth:`fit`.

        Parameters
        ----------
        %(ridge_batches)s
        classes : array of shape (n_classes,), default=None
            All labels that may come; necessary if there are more batches than the first ones.

        Returns
        -------
        self : estimator
            The fitted classifier. A fit that fails leaves it as it was.
        """
        return self._fit_batches(batches, target, {"classes": classes})

    @elsewhere_too
    @documented
    def predict_proba(self, X: Any) -> Real:
        """Return the probability of every class.

        A prediction f of ±1 says that the probability is (1 + f) / 2, but may be below zero, and is
        drawn towards the mean by the penalty. So these numbers, cut off smoothly at a floor, are
        raised to a power and divided by their sum; floor and power are those for which the labels
        of training rows are most likely, each predicted without that row.

        Parameters
        ----------
        %(ridge_rows)s

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`, of sum one; float32 for float32 rows, else float64.
        """
        scores = self._decision(X)
        return _probabilities(scores.astype(np.float64), *self._calibration).astype(scores.dtype)

    @cached_property
    def _calibration(self) -> tuple[float, float]:
        """The power and the floor; this is reached only where no rows are left out."""
        raise InputError(
            f"probabilities need predictions of rows that are left out, which "
            f"features={self.features!r} with alpha={self.alpha!r} has not: use alpha='loo', or "
            "other features."
        )

    @property
    def _row_costs(self) -> Callable[[LeftOut], Vector]:
        """How unlikely the label of every row is.

        Squares also grow where a larger alpha makes all predictions of right labels smaller, which
        harms neither labels nor probabilities.
        """
        return lambda left_out: _surprises(left_out, *_most_likely(left_out))

    def _from_left_out(self, left_out: LeftOut) -> dict[str, Any]:
        calibration = _most_likely(left_out)
        return super()._from_left_out(left_out) | {"_calibration": calibration}

    @elsewhere_too
    @documented
    def decision_function(self, X: Any) -> Real:
        """Return the predictions of the targets.

        Parameters
        ----------
        %(ridge_rows)s

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, above 0 for the second one.
        """
        scores = self._decision(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @elsewhere_too
    @documented
    def predict(self, X: Any) -> Real:
        """Return the label of the largest prediction.

        Parameters
        ----------
        %(ridge_rows)s

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Of `classes_`.
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Real = self.classes_[chosen]
        return labels

    def _seen_targets(self, labels: Any, weights: Vector | None) -> tuple[Real, Real]:
        """Return the labels of some rows, and how many rows of weight have each of them."""
        counted = labels if weights is None else labels[weights > 0.0]
        return np.unique(counted, return_counts=True)

    def _rows_of_block(self, X: Any, y: Any, weights: Any, known: KnownTargets) -> TrainingRows:
        """Return checked rows of a block of many; none may be left that has weight."""
        rows, labels = self._checked_labels(X, y)
        return self._coded_rows(rows, labels, checked_weights(weights, rows), known)

    def _known_targets(self, seen: Sequence[tuple[Real, Real]]) -> KnownTargets:
        """Return the classes, and what rows of each are weighted by, from the labels of blocks."""
        classes, places = np.unique(np.concatenate([each for each, _ in seen]), return_inverse=True)
        _check_classes(classes)
        counts = np.bincount(places, np.concatenate([count for _, count in seen]))
        return KnownTargets(classes, self._class_factors(classes, counts))

    def _class_factors(self, classes: Real, counts: Real) -> Vector | None:
        """Return what the weights of rows of every class are multiplied by; None for nothing."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return np.asarray(counts.sum() / (classes.size * counts))
        factors: Vector = compute_class_weight(self.class_weight, classes=classes, y=classes)
        if not (np.isfinite(factors).all() and factors.min() >= 0.0):
            raise InputError(
                f"class_weight={self.class_weight!r} is out of range; allowed are finite numbers "
                "of at least 0: change the others."
            )
        return factors

    def _coded_rows(
        self, rows: Any, labels: Real, weights: Vector | None, known: KnownTargets
    ) -> TrainingRows:
        """Return rows with targets of ±1, weighted by class; labels of no class have no weight."""
        classes, factors = known.classes, known.factors
        if factors is not None:
            places = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
            weights = factors[places] * (1.0 if weights is None else weights)
        targets = np.zeros((labels.size, _targets(classes)))
        of_class = np.isin(labels, classes)
        targets[of_class] = _signs(labels[of_class], classes)
        return TrainingRows.of_some_weight(rows, targets, weights)

    def _checked_labels(self, X: Any, y: ArrayLike) -> tuple[Any, Real]:
        if y is None:
            raise InputError(
                "This estimator requires y to be passed, but the target y is None: give a label "
                "for every row."
            )
        rows = checked_rows(X, estimator=self)
        labels = column_or_1d(sound_array("y", y))
        if np.asarray(y).ndim == 2:
            warn_user(
                "A column-vector y was passed when a 1d array was expected: give y.ravel().",
                DataConversionWarning,
            )
        check_consistent_length(rows, labels)
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y", estimator_name=type(self).__name__)
        check_classification_targets(labels)
        return rows, labels

    def _known_classes(self, classes: ArrayLike | None) -> Real:
        if self._goes_on:
            known: Real = self.classes_
            if classes is not None and not np.array_equal(known, np.unique(np.asarray(classes))):
                raise InputError(
                    f"classes={classes!r} differ from those of the first call, {known.tolist()}: "
                    "leave classes at None."
                )
            return known
        if classes is None:
            raise InputError(
                "classes=None in the first call of partial_fit: give all labels that may come."
            )
        known = np.unique(np.asarray(classes))
        _check_classes(known)
        return known


def _check_classes(classes: Real) -> None:
    if classes.size < 2:
        raise InputError(
            f"the classifier needs at least 2 classes, got {classes.size} class: "
            f"{classes.tolist()}: give rows of another class."
        )


def _probabilities(scores: Float64, power: float, floor: float) -> Float64:
    """Return probabilities of classes; a single column is that of the second of two."""
    scores = np.column_stack((-scores, scores)) if scores.shape[1] == 1 else scores
    shares = 0.5 * (1.0 + scores)
    # Strictly increasing, so that the largest prediction has the largest probability.
    positive = np.maximum(shares, 0.0) + floor * np.exp(np.minimum(shares, 0.0))
    return np.asarray(softmax(power * np.log(positive), axis=1))


def _most_likely(left_out: LeftOut) -> tuple[float, float]:
    """Return the power and the floor of the largest likelihood of the labels of rows left out."""

    def cost(logarithms: Vector) -> float:
        return float(left_out.weights @ _surprises(left_out, *np.exp(logarithms)))

    found = minimize(cost, _FIRST_LOGARITHMS, method="Nelder-Mead", bounds=_LOGARITHMS)
    power, floor = np.exp(found.x).tolist()
    return power, floor


def _surprises(left_out: LeftOut, power: float, floor: float) -> Vector:
    """Return minus the logarithm of the probability of the label of every row left out.

    As if one row more had any label (Laplace's rule of succession): that no label is wrong among
    these does not mean that none ever is.
    """
    targets, rows = left_out.targets, np.arange(left_out.targets.shape[0])
    labels = (targets[:, 0] > 0.0).astype(int) if targets.shape[1] == 1 else targets.argmax(axis=1)
    likely = np.maximum(_probabilities(left_out.predictions, power, floor), _LEAST_CHANCE)
    surprises = -np.log(likely)
    return np.asarray(surprises[rows, labels] + np.mean(surprises, axis=1) / rows.size)


def _targets(classes: Real) -> int:
    return 1 if classes.size == 2 else int(classes.size)


def _refuse_unknown(labels: Real, classes: Real) -> None:
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise InputError(
            f"y has the labels {unknown.tolist()}, which are not among the classes "
            f"{classes.tolist()}: name them in the first call of partial_fit."
        )


def _signs(labels: Real, classes: Real) -> Float64:
    """Return a column of ±1 for every class, for two classes only that of the second."""
    columns = classes[1:] if classes.size == 2 else classes
    return np.where(labels[:, np.newaxis] == columns, 1.0, -1.0)

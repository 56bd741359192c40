"""LearnedMetric: columns in a metric that predictions depend on, for pipelines."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.arrays import Float64, Rows, Vector
from powersketch.docstrings import documented
from powersketch.exceptions import InputError
from powersketch.kernel_ridge.columns import SCALINGS, Columns, checked_clip
from powersketch.kernel_ridge.metric import FORMS
from powersketch.kernel_ridge.search import Wishes, found_model
from powersketch.kernel_ridge.training_rows import (
    TrainingRows,
    checked_targets,
    checked_weights,
    without_absurd_rows,
)
from powersketch.kernels import Gaussian, Linear
from powersketch.parameters import one_of
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.validation import REAL_ROWS, checked_rows, sound_array


@documented
class LearnedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Columns turned and stretched such that distances are those that matter for y.

    A kernel ridge regression is fitted, the mean outer product of its gradients says which
    directions the prediction depends on, and in the metric of a power of it the regression is
    fitted again: recursive feature machines [1]_. Powers ½ and 1 and up to five steps are tried on
    a pilot of the rows, and held-out rows decide. What comes after it in a pipeline, such as a
    feature map of the Gaussian kernel or nearest neighbours, sees Euclidean distances
    ‖z(x) − z(y)‖² = (x − y)ᵀM(x − y) of columns that were clipped and scaled before.

    Parameters
    ----------
    metric : {"full", "diagonal"}, default="full"
        Whether columns are mixed, or only weighted. Of more than 256 columns, the full metric has
        a rank of 256 at most.
    scaling : {"scaled", "as-is", "indicators"}, default="scaled"
        What is done to columns before: equal spread for all, nothing but one factor, or as
        "scaled" with a column for every value of those that have few whole numbers.
    clip : float, "auto" or None, default="auto"
        Entries further from the median of a column than this many standard deviations are clipped;
        "auto" clips what is beyond all plausible values, None nothing.
    %(random_state)s

    Attributes
    ----------
    metric_ : ndarray of shape (d, d)
        The metric M of the scaled columns, of trace one.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Its diagonal by given columns, of sum one.
    seed_ : int
        The seed that all random numbers come from.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns seen by `fit`, if they had string names.

    References
    ----------
    .. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature learning in
       neural networks and backpropagation-free machine learning models", Science 383, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import LearnedMetric
    >>> random = np.random.RandomState(0)
    >>> X = random.randn(400, 6)
    >>> y = np.sin(2 * X[:, 0] + X[:, 1])
    >>> metric = LearnedMetric("diagonal", random_state=0).fit(X, y)
    >>> bool(metric.feature_importances_[:2].sum() > 0.95)
    True
    """

    _columns: Columns

    def __init__(
        self,
        metric: str = "full",
        *,
        scaling: str = "scaled",
        clip: float | str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.metric = metric
        self.scaling = scaling
        self.clip = clip
        self.random_state = random_state

    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        %(ridge_rows)s
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Numbers to be predicted, or labels that are texts or truth values. Labels that are
            numbers are taken for numbers: convert them with ``astype(str)``.
        %(ridge_weights)s

        Returns
        -------
        self : LearnedMetric
            The transformer, fitted.
        """
        one_of("metric", self.metric, FORMS)
        one_of("scaling", self.scaling, SCALINGS)
        checked_clip(self.clip)
        seed = seed_from(self.random_state)
        rows = self._training_rows(X, y, sample_weight)
        rows, _ = without_absurd_rows(rows, lambda _: Linear())
        wishes = Wishes(self.metric, False, self.scaling, self.clip, True)
        streams = RandomStreams(seed, "learned-metric")
        model = found_model(rows, Gaussian("auto"), wishes, streams)
        if model.columns is None or model.columns.metric is None:
            raise InputError(
                f"a metric cannot be learned from {rows.count} rows; necessary are at least 40: "
                "give more rows."
            )
        validate_data(self, X, skip_check_array=True)
        self.seed_, self._columns = seed, model.columns
        return self

    @documented
    def transform(self, X: Any) -> Rows:
        """Return the rows in the metric.

        Parameters
        ----------
        %(ridge_rows)s

        Returns
        -------
        Z : ndarray or sparse matrix of shape (n_samples, n_features)
            float32 for float32 rows, else float64; sparse for sparse rows and a diagonal metric.
        """
        check_is_fitted(self)
        X = validate_data(self, sound_array("X", X), **REAL_ROWS, reset=False)
        return self._columns.transform(X)

    @property
    def metric_(self) -> Float64:
        """The metric of the scaled columns."""
        check_is_fitted(self)
        matrix = self._columns.metric_matrix
        assert matrix is not None
        return matrix

    @property
    def feature_importances_(self) -> Vector:
        """The diagonal of the metric by given columns."""
        check_is_fitted(self)
        return self._columns.importances()

    @property
    def _n_features_out(self) -> int:
        root = self._columns.metric
        assert root is not None
        return int(root.shape[-1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        labels = np.asarray(y) if y is not None else None
        if labels is not None and labels.dtype.kind in "OUSb" and labels.ndim == 1:
            rows = checked_rows(X, estimator=self)
            classes = np.unique(labels)
            targets = np.where(labels[:, np.newaxis] == classes, 1.0, -1.0)
        else:
            rows, targets = checked_targets(X, y, estimator=self)
        weights = checked_weights(sample_weight, rows)
        return TrainingRows.of_positive_weight(rows, targets, weights)

"""What all feature maps share: scikit-learn's interface around a row map chosen by `fit`."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.arrays import Real, Rows, is_sparse, padded_length
from powersketch.execution import Progress, thread_count
from powersketch.feature_maps.automatic_size import DrawnMap, checked_size
from powersketch.feature_maps.batches import transform_rows
from powersketch.feature_maps.outliers import without_outliers
from powersketch.feature_maps.range_checks import check_range
from powersketch.feature_maps.row_maps import RowMap
from powersketch.kernels import Kernel
from powersketch.parameters import (
    checked_integer,
    checked_truth,
    checked_verbose,
    one_of,
    refuse_unused,
)
from powersketch.powers import POWER_METHODS
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.routines import LARGEST_LENGTH
from powersketch.sketches import BASE_SKETCHES
from powersketch.validation import REAL_ROWS, checked_rows, sound_array

if TYPE_CHECKING:
    from powersketch.accuracy import Certificate

# In shorter vectors, all products that a few features take can vanish.
_SHORTEST_INTERNAL = 16
# T for sparse rows, where it is another one than OSNAP. A product of many factors is zero as soon
# as one of them is: there, sums that may cancel do not serve.
_SPARSE_SKETCHES = {"ctr": "countsketch"}


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Draws a row map in `fit` and applies it in `transform`; subclasses say which.

    A subclass stores its parameters in `__init__`, checks its own in `_check_kernel_parameters`,
    and returns from `_prepare` the exact kernel, the row map of a given size and further fitted
    attributes.
    """

    # What a user can choose where rows differ from those given to fit.
    _safe_option: ClassVar[str] = "expansion='none', which does not look at the data"

    n_components: int | str
    eps: float | None
    method: str
    base_sketch: str
    norm_preserving: bool
    internal_components: int | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the sketch; look at up to 512 rows where a choice is made from the data.

        With ``n_components="auto"`` sketches of several sizes are measured on up to 1000 rows, and
        the one to be kept on up to 2000 others.

        An OutlierWarning names rows that are absurdly far from all others, such as fill values:
        they do not count in these choices. With "auto", it also says where a few rows decide the
        error, so that nothing can be promised for further rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.
        y : ignored
            Present for pipelines.

        Returns
        -------
        self : estimator
            The fitted map.
        """
        del y
        self._check_shared_parameters()
        self._check_kernel_parameters()
        refuse_unused(self, self._unused_options())
        given = X
        X = _without_duplicates(checked_rows(X, estimator=self))
        ordinary = without_outliers(X)
        seed = seed_from(self.random_state)
        size, certificate = self._chosen_size(X, ordinary, seed)
        kernel, row_map, attributes = self._prepare(ordinary, seed, size)
        # Nothing is stored before everything is known: a failed fit leaves the last one intact.
        validate_data(self, given, skip_check_array=True)
        self.seed_, self.kernel_, self._row_map = seed, kernel, row_map
        self.n_components_ = size
        for name, value in attributes.items():
            setattr(self, name, value)
        if certificate is not None:
            self.certificate_ = certificate
        elif hasattr(self, "certificate_"):
            # That of an earlier fit says nothing about this one.
            del self.certificate_
        return self

    def transform(self, X: Any) -> Real:
        """Return the features of every row.

        A RangeWarning says that rows are so unlike those given to `fit` that their features are
        clearly less accurate than those of a map which does not look at the data; the remedy is in
        its message. Features of single rows, which nothing can be measured on, may be fine.

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
        X = sound_array("X", X)
        X = validate_data(self, X, **REAL_ROWS, reset=False, ensure_all_finite=False)
        X = _without_duplicates(X)
        progress = Progress(type(self).__name__, X.shape[0], self.verbose)
        Z, strangeness = transform_rows(
            self._row_map, X, self.n_components_, threads=threads, progress=progress
        )
        if strangeness.any():
            safe_map = getattr(self._row_map, "safe", None)
            check_range(X, Z, strangeness, self.kernel_, safe_map, self._safe_option)
        return Z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_kernel_parameters(self) -> None:
        """Refuse bad parameters before any data is touched."""
        raise NotImplementedError

    def _unused_options(self) -> dict[str, str]:
        """Return the options that the chosen method has no use for, and why, for each."""
        if self.method == "ctr" and self.base_sketch not in ("countsketch", "osnap"):
            why = "with method='ctr', unless base_sketch is 'countsketch' or 'osnap'"
            return {"internal_components": why}
        if self.method != "tensorsketch":
            return {}
        why = "with method='tensorsketch', which has its own hashes and no intermediate powers"
        return dict.fromkeys(("base_sketch", "internal_components"), why)

    def _smallest_size(self) -> int:
        """Return how few components this map can have."""
        return 1

    def component_range(self, rows: int) -> tuple[int, int]:
        """Return the smallest and the largest number of components, whatever the number of rows."""
        del rows
        internal = self.internal_components
        largest = int(internal) if isinstance(internal, numbers.Integral) else LARGEST_LENGTH
        return self._smallest_size(), largest

    def _prepare(self, X: Rows, seed: int, size: int) -> tuple[Kernel, RowMap, dict[str, Any]]:
        """Return the exact kernel, the row map, and further fitted attributes by name."""
        raise NotImplementedError

    def _check_shared_parameters(self) -> None:
        size = checked_size(self.n_components, self.eps)
        one_of("base_sketch", self.base_sketch, ("auto", *BASE_SKETCHES))
        checked_truth("norm_preserving", self.norm_preserving)
        _internal_length(self.internal_components, self._smallest_size() if size is None else size)
        thread_count(self.n_jobs)
        checked_verbose(self.verbose)

    def _chosen_size(self, X: Rows, ordinary: Rows, seed: int) -> tuple[int, Certificate | None]:
        """Return the number of components, and a certificate if it was measured: on all rows."""
        if self.n_components != "auto":
            return int(self.n_components), None
        # Loaded when it is first needed: most sketches are drawn without it.
        from powersketch.accuracy import grown_size

        threads = thread_count(self.n_jobs)

        def draw(size: int) -> DrawnMap:
            kernel, row_map, _ = self._prepare(ordinary, seed, size)
            return DrawnMap(kernel, row_map, size, threads)

        return grown_size(
            draw,
            X,
            float(self.eps or 0.0),
            RandomStreams(seed, "automatic_size"),
            sizes=self.component_range(X.shape[0]),
            n_jobs=self.n_jobs,
        )

    def _sketch_options(self, X: Rows, size: int) -> dict[str, Any]:
        """Return how the row maps of this estimator are to be drawn."""
        base_sketch = self.base_sketch
        # Other names tell how a whole kernel is approximated, not how a power is sketched.
        method = self.method if self.method in POWER_METHODS else "power"
        if base_sketch == "auto":
            base_sketch = "srht" if not is_sparse(X) else _SPARSE_SKETCHES.get(method, "osnap")
        return {
            "method": method,
            "internal": _internal_length(self.internal_components, size),
            "base_sketch": base_sketch,
            "preserve_norms": bool(self.norm_preserving),
        }


def _without_duplicates(X: Rows) -> Rows:
    """Return sparse rows whose every entry is stored once: norms are sums over the entries."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _internal_length(internal_components: Any, n_components: int) -> int:
    """Return the length of intermediate powers, a power of two that is not below the output."""
    if internal_components is None:
        return max(padded_length(n_components), _SHORTEST_INTERNAL)
    internal = checked_integer(
        "internal_components",
        internal_components,
        n_components,
        LARGEST_LENGTH,
        remedy=f"it may not be smaller than n_components={n_components}, None is the default",
    )
    return padded_length(internal)

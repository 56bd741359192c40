"""What all feature maps share: scikit-learn's interface around a row map chosen by `fit`."""

from __future__ import annotations

import inspect
import numbers
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.arrays import LARGEST_LENGTH, Real, Rows
from powersketch.ecosystem import DocumentationLinks, in_library_of
from powersketch.engines import elsewhere_too
from powersketch.exceptions import InputError, InputTypeError, RangeWarning, is_wanted
from powersketch.execution import Progress, thread_count
from powersketch.feature_maps.choice_rows import MOST_MAP_ROWS, ChoiceRows, are_many
from powersketch.feature_maps.maps import RowMap, write_batches
from powersketch.feature_maps.maps.composed import ROWS_PER_DIRECTION, CompressedMap
from powersketch.feature_maps.pilot import (
    DO_NOT_COUNT,
    PILOT_ROWS,
    Pilot,
    absurd_rows,
    check_range,
    without_rows,
)
from powersketch.kernels import EntryMoments, Kernel, asks_for_scale, at_scale
from powersketch.parameters import (
    USUAL_SIZE,
    checked_integer,
    checked_size,
    checked_truth,
    checked_verbose,
    one_of,
    refuse_unused,
)
from powersketch.powers import POWER_METHODS, PowerOptions
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.sketches import BASE_SKETCHES, padded_length
from powersketch.storable import Postponable
from powersketch.validation import REAL_ROWS, checked_rows, sound_array, without_duplicates

if TYPE_CHECKING:
    from powersketch.accuracy import Certificate

POWER_NAMES = ("squaring", *(name for name in POWER_METHODS if name != "power"))
# In shorter vectors, all products that a few features take can vanish.
_SHORTEST_INTERNAL = 16
# T for sparse rows, where it is another one than OSNAP. A product of many factors is zero as soon
# as one of them is: there, sums that may cancel do not serve.
_SPARSE_SKETCHES = {"ctr": "countsketch"}
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class FeatureMap(
    DocumentationLinks, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Draws a row map in `fit` and applies it in `transform`; subclasses say which.

    A subclass stores its parameters in `__init__`, checks its own in `_check_parameters`, and
    returns from `_draw` the exact kernel, the row map of a given size and further fitted
    attributes. The parameters of its `kernel_class` are parameters of the map, too.
    """

    kernel_class: ClassVar[type[Kernel]]
    kernel_names: ClassVar[tuple[str, ...]] = ()  # of the kernel's parameters
    # What a user can choose where rows differ from those given to fit.
    _safe_option: ClassVar[str] = "expansion='none', which does not look at the data"
    # The path of all random streams of this map.
    _stream_name: ClassVar[str]
    # The names that parameters can be; `base_sketch` is one of them in every map.
    _choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    # The parameter that says how powers are sketched.
    _powers_option: ClassVar[str] = "power_method"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kernel_class" in cls.__dict__:
            cls.kernel_names = tuple(inspect.signature(cls.kernel_class).parameters)

    # Of a loaded map, tables that are large are drawn by the first `transform`.
    _row_map = Postponable[RowMap]()
    seed_: int
    kernel_: Kernel
    n_components_: int

    n_components: int | str
    eps: float | None
    method: str
    base_sketch: str
    norm_preserving: bool
    internal_components: int | None
    compress_from: int | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int

    @elsewhere_too
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the sketch; look at up to 512 rows where a choice is made from the data.

        With ``n_components="auto"`` sketches of several sizes are measured on up to 1000 rows, and
        the one to be kept on up to 2000 others. Of very many rows, all that comes from the data
        comes from a sample of 16,384 and the longest row, the same for an array in memory and for
        a Dask array, however that is divided; only ``gamma="scale"`` is that of all rows.

        An OutlierWarning names rows that are absurdly far from all others, such as fill values:
        they do not count in these choices. With "auto", it also says where a few rows decide the
        error, so that nothing can be promised for further rows.

        Parameters
        ----------
        X : array, sparse matrix, or Dask array or DataFrame of shape (n_samples, n_features)
            Rows are samples.
        y : ignored
            Present for pipelines.

        Returns
        -------
        self : estimator
            The fitted map.
        """
        del y
        return self._fit(X)

    def _fit(self, X: Any, moments: EntryMoments | None = None) -> Self:
        """Fit rows in memory; those that they were taken from may have other moments."""
        kernel = at_scale(self._exact_kernel(), moments)
        self._check_before_fit()
        rows = checked_rows(X, estimator=self)
        if are_many(rows.shape[0], self._most_rows_in_view):
            scale = asks_for_scale(kernel)
            chosen = ChoiceRows.of_all(rows, self._most_rows_in_view, measure=scale)
            chosen.warn_of_far_rows(DO_NOT_COUNT)
            return self._fit_chosen(X, replace(chosen, moments=moments or chosen.moments))
        return self._fit_rows(X, kernel, rows, without_rows(rows, absurd_rows(rows)))

    def _fit_chosen(self, given: Any, chosen: ChoiceRows) -> Self:
        """Fit rows that stand for all; some rows as they were `given` tell names of columns."""
        kernel = at_scale(self._exact_kernel(), chosen.moments)
        return self._fit_rows(given, kernel, chosen.rows, chosen.ordinary)

    def _fit_rows(self, given: Any, kernel: Any, rows: Rows, ordinary: Rows) -> Self:
        """Fit rows that sizes are measured on, and those that choices are made from."""
        kernel, seed = self._resolved(kernel, ordinary), seed_from(self.random_state)
        size, certificate = self._chosen_size(kernel, rows, ordinary, seed)
        row_map, attributes = self._draw_compressed(kernel, ordinary, seed, size)
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

    @elsewhere_too
    def transform(self, X: Any) -> Any:
        """Return the features of every row.

        A RangeWarning says that rows are so unlike those given to `fit` that their features are
        clearly less accurate than those of a map which does not look at the data; the remedy is in
        its message. Features of single rows, which nothing can be measured on, may be fine.

        Parameters
        ----------
        X : array, sparse matrix, or Dask array or DataFrame of shape (n_samples, n_features)
            Rows are samples.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            float32 for float32 rows, else float64. For rows of another array library in main
            memory, with ``sklearn.set_config(array_api_dispatch=True)``, an array of that library.
            Of Dask collections, a lazy Dask array.
        """
        rows = self._rows_to_transform(X)
        out = np.empty((rows.shape[0], self.n_components_), dtype=rows.dtype)
        return in_library_of(X, self._write(rows, out), self)

    def transform_into(self, X: Any, out: Real) -> Real:
        """Write the features of every row into an array of one's own, and return it.

        Memory that is used again need not be fetched from the system anew, which for large outputs
        takes as long as the features themselves.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows are samples.
        out : ndarray of shape (n_samples, n_components)
            Contiguous, and float32 for float32 rows, else float64.

        Returns
        -------
        out : ndarray
            The array that was given. A RangeWarning says the same as that of `transform`.
        """
        X = self._rows_to_transform(X)
        _check_output(out, (X.shape[0], self.n_components_), X.dtype)
        return self._write(X, out)

    def _rows_to_transform(self, X: Any) -> Rows:
        """Return the rows as the row map takes them, or say what is wrong with them."""
        check_is_fitted(self)
        X = sound_array("X", X)
        # Of such arrays there is nothing to check; whether all entries are finite, the norms of the
        # rows will tell.
        if (
            type(X) is np.ndarray
            and X.dtype in _FLOATS
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and len(X) > 0
            and not hasattr(self, "feature_names_in_")
        ):
            return X
        X = validate_data(self, X, **REAL_ROWS, reset=False, ensure_all_finite=False)
        return without_duplicates(X)

    def _write(self, X: Rows, out: Real) -> Real:
        progress = Progress(type(self).__name__, X.shape[0], self.verbose)
        strangeness = write_batches(self._row_map, X, out, thread_count(self.n_jobs), progress)
        if strangeness.any() and is_wanted(RangeWarning):
            safe_map = getattr(self._row_map, "safe", None)
            check_range(X, out, strangeness, self.kernel_, safe_map, self._safe_option)
        return out

    @property
    def _most_rows_in_view(self) -> int:
        """How many rows are looked at where there are very many, beside the longest one."""
        if self.compress_from is None or isinstance(self.n_components, str):
            return MOST_MAP_ROWS
        return max(MOST_MAP_ROWS, ROWS_PER_DIRECTION * int(self.n_components))

    def _looks_at_rows(self, columns: int) -> bool:
        """Tell whether anything about the map comes from the rows given to `fit`."""
        del columns
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_before_fit(self) -> None:
        """Refuse bad parameters, and those without effect, before any data is touched."""
        self._check_parameters()
        refuse_unused(self, self._unused_options())

    def _check_parameters(self) -> None:
        """Refuse bad parameters."""
        smallest, why = self._smallest_size()
        size = checked_size(self.n_components, self.eps, smallest, why)
        one_of("base_sketch", self.base_sketch, ("auto", *BASE_SKETCHES))
        for name, allowed in self._choices.items():
            one_of(name, getattr(self, name), allowed)
        checked_truth("norm_preserving", self.norm_preserving)
        internal, lowest = self.internal_components, smallest if size is None else size
        if internal is not None:
            remedy = f"it may not be smaller than n_components={lowest}, None is the default"
            checked_integer("internal_components", internal, lowest, LARGEST_LENGTH, remedy=remedy)
        if self.compress_from is not None:
            _check_compression(self.compress_from, size, internal)
        checked_verbose(self.verbose)
        thread_count(self.n_jobs)

    def _exact_kernel(self) -> Any:
        """Return the kernel with the map's parameters, its gamma still to be resolved."""
        return self.kernel_class(**{name: getattr(self, name) for name in self.kernel_names})

    def _unused_options(self) -> dict[str, str]:
        """Return the options that the chosen method has no use for, and why, for each."""
        powers = f"{self._powers_option}={self._powers_by!r}"
        if self._powers_by == "ctr" and self.base_sketch not in ("countsketch", "osnap"):
            why = f"with {powers}, unless base_sketch is 'countsketch' or 'osnap'"
            return {"internal_components": why}
        if self._powers_by != "tensorsketch":
            return {}
        why = f"with {powers}, which has its own hashes and no intermediate powers"
        return dict.fromkeys(("base_sketch", "internal_components"), why)

    def _smallest_size(self) -> tuple[int, str]:
        """Return how few components this map can have, and why not fewer."""
        return 1, USUAL_SIZE

    def component_range(self, rows: int) -> tuple[int, int]:
        """Return the smallest and the largest number of components, whatever the number of rows."""
        del rows
        internal = self.internal_components
        largest = int(internal) if isinstance(internal, numbers.Integral) else LARGEST_LENGTH
        return self._smallest_size()[0], largest

    def _resolved(self, kernel: Any, X: Rows) -> Any:
        """Return the kernel with numbers for what depends on the data."""
        return kernel.resolve(X)

    def _draw(self, kernel: Any, X: Rows, seed: int, size: int) -> tuple[RowMap, dict[str, Any]]:
        """Return a row map of the exact kernel, and fitted attributes by name."""
        raise NotImplementedError

    def _is_exact(self, columns: int, size: int) -> bool:
        """Tell whether a map of this size has no error, so that nothing is to be compressed."""
        del columns, size
        return False

    def _draw_compressed(
        self, kernel: Any, X: Rows, seed: int, size: int
    ) -> tuple[RowMap, dict[str, Any]]:
        """Draw the map; if asked for, a larger one of which main directions are kept."""
        if self.compress_from is None or self._is_exact(X.shape[1], size):
            return self._draw(kernel, X, seed, size)
        inner, attributes = self._draw(kernel, X, seed, self.compress_from)
        streams = RandomStreams(seed, f"{self._stream_name}/principal")
        pilot = Pilot.of(X, streams, max(ROWS_PER_DIRECTION * size, PILOT_ROWS))
        threads = thread_count(self.n_jobs)
        row_map = CompressedMap.principal(inner, self.compress_from, pilot, size, threads)
        return row_map, attributes

    def _chosen_size(
        self, kernel: Any, X: Rows, ordinary: Rows, seed: int
    ) -> tuple[int, Certificate | None]:
        """Return the number of components, and a certificate if it was measured: on all rows."""
        if self.n_components != "auto":
            return int(self.n_components), None
        # Loaded when it is first needed: most sketches are drawn without it.
        from powersketch.accuracy import grown_size

        threads = thread_count(self.n_jobs)

        def draw(size: int) -> DrawnMap:
            row_map, _ = self._draw(kernel, ordinary, seed, size)
            return DrawnMap(kernel, row_map, size, threads)

        return grown_size(
            draw,
            X,
            float(self.eps or 0.0),
            RandomStreams(seed, "automatic_size"),
            sizes=self.component_range(X.shape[0]),
            n_jobs=self.n_jobs,
        )

    @property
    def _powers_by(self) -> str:
        """How powers are sketched; other names tell how a whole kernel is approximated."""
        name: str = getattr(self, self._powers_option)
        return name if name in POWER_METHODS else "power"

    def _sketch_options(self, X: Rows, size: int) -> PowerOptions:
        """Return how the powers of this map are to be sketched."""
        base_sketch, method = self.base_sketch, self._powers_by
        if base_sketch == "auto":
            dense = isinstance(X, np.ndarray)
            base_sketch = "srht" if dense else _SPARSE_SKETCHES.get(method, "osnap")
        internal = padded_length(int(self.internal_components or max(size, _SHORTEST_INTERNAL)))
        return PowerOptions(internal, base_sketch, bool(self.norm_preserving), method=method)


@dataclass(frozen=True, eq=False, repr=False)
class DrawnMap:
    """A row map of one size, and the kernel that it approximates, to be measured."""

    kernel_: Kernel
    row_map: RowMap
    size: int
    threads: int

    def transform(self, X: Rows) -> Real:
        """Return the features of every row."""
        out = np.empty((X.shape[0], self.size), dtype=X.dtype)
        write_batches(self.row_map, X, out, self.threads)
        return out


def _check_compression(compress_from: Any, size: int | None, internal: int | None) -> None:
    """Refuse numbers of features before the compression that are too small or have no meaning."""
    if size is None:
        raise InputError(
            f"compress_from={compress_from!r} needs n_components as an integer, not 'auto': pass a "
            "number, or compress_from=None to have it chosen for eps."
        )
    remedy = f"it may not be smaller than n_components={size}, None does not compress"
    inner = checked_integer("compress_from", compress_from, size, LARGEST_LENGTH, remedy=remedy)
    if internal is not None and internal < inner:
        raise InputError(
            f"internal_components={internal} is smaller than compress_from={inner}; choose at "
            f"least {inner}, or None for the default."
        )


def _check_output(out: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    """Refuse arrays that features cannot be written into."""
    if not isinstance(out, np.ndarray):
        raise InputTypeError(
            f"out is a {type(out).__name__}; allowed is a NumPy array: pass "
            f"numpy.empty({shape}, dtype='{dtype}')."
        )
    if out.shape != shape or out.dtype != dtype or not (out.flags.carray and out.flags.writeable):
        raise InputError(
            f"out has shape {out.shape} and dtype {out.dtype}; it must be contiguous, writeable, "
            f"of shape {shape} and dtype {dtype}: pass numpy.empty({shape}, dtype='{dtype}')."
        )

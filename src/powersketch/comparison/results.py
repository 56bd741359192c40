"""The figures of a comparison of feature maps, and the files they are written to."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from powersketch.arrays import Float64, Vector
from powersketch.comparison.prediction import Baseline
from powersketch.comparison.recommend import Recommendation, recommend
from powersketch.comparison.text import html_table, text_table
from powersketch.kernels import Kernel


@dataclass(frozen=True)
class Measurement:
    """One method at one size: medians over the seeds.

    Parameters
    ----------
    method : str
        Its name in ``powersketch.comparison.METHODS``.
    kind : {"oblivious", "data-dependent", "peer"}
        A sketch, which is drawn without the data but for its mean and scale; a map that is chosen
        by the data; or a map of scikit-learn.
    n_components : int
        Number of features.
    frobenius : float
        ‖Z Zᵀ − K‖ / ‖K‖ in Frobenius norms over all pairs of the measured rows.
    frobenius_spread : float
        Half of the difference between the largest and the smallest one of all seeds.
    operator_norm : float
        ‖Z Zᵀ − K‖ / ‖K‖ in operator norms.
    spectral : tuple of two floats or None
        The smallest and the largest eigenvalue of the pencil (Z Zᵀ + αI, K + αI) on the rows of
        the spectrum, both 1 if Z is exact; None if the method failed.
    fit_seconds : float
        Time of `fit` on the rows for fitting.
    transform_seconds : float
        Time of `transform` on the measured rows, the best of a few runs where they are short.
    transform_rows : int
        How many rows these are.
    state_bytes : int
        What the arrays of the fitted map take.
    transform_bytes : int
        The most that was allocated at a time by Python and NumPy during `transform`, features
        included.
    error_message : str or None
        Why the method failed at this size, if it did; then all other figures are NaN or 0.
    warnings : tuple of str
        The different warnings that the method gave at this size.
    prediction_error : float
        If there is a target: the error of ridge regression on these features at the measured rows,
        1 − R² or the share of wrong classes, with the first of the seeds.
    """

    method: str
    kind: str
    n_components: int
    frobenius: float = math.nan
    frobenius_spread: float = math.nan
    operator_norm: float = math.nan
    spectral: tuple[float, float] | None = None
    fit_seconds: float = math.nan
    transform_seconds: float = math.nan
    transform_rows: int = 0
    state_bytes: int = 0
    transform_bytes: int = 0
    error_message: str | None = None
    warnings: tuple[str, ...] = ()
    prediction_error: float = math.nan

    @cached_property
    def failed(self) -> bool:
        """Whether there are no figures."""
        return self.error_message is not None

    @cached_property
    def memory_bytes(self) -> int:
        """What the fitted map takes, and `transform` of the measured rows on top of it."""
        return self.state_bytes + self.transform_bytes

    @cached_property
    def seconds_per_row(self) -> float:
        """Time of `transform`, divided by the number of rows."""
        return self.transform_seconds / self.transform_rows if self.transform_rows else math.nan

    def seconds_for(self, rows: int) -> float:
        """Return how long `transform` takes for this number of rows, in proportion."""
        return rows * self.seconds_per_row

    def bytes_for(self, rows: int) -> int:
        """Return an upper estimate of the memory for this number of rows, in proportion."""
        share = rows / self.transform_rows if self.transform_rows else 0.0
        return self.state_bytes + math.ceil(share * self.transform_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as what :func:`json.dumps` takes; NaN becomes None."""
        figures = {name: _plain(value) for name, value in dataclasses.asdict(self).items()}
        return {**figures, "memory_bytes": self.memory_bytes}


@dataclass(frozen=True)
class ExactKernel:
    """What the exact kernel matrix of the measured rows costs.

    Parameters
    ----------
    seconds : float
        Time to compute it.
    bytes : int
        What it takes in float64.
    """

    seconds: float
    bytes: int


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Feature maps of one kernel measured on the same rows; printed, a table.

    It is what :func:`powersketch.compare` returns.

    Parameters
    ----------
    kernel : str
        The kernel with its parameters.
    data_shape : tuple of two ints
        Rows and columns of the data.
    fit_rows, measured_rows : int
        On how many rows maps were fitted, and on how many others they were measured.
    components : tuple of ints
        The sizes that were asked for, ascending.
    seeds : int
        How many seeds each figure is the median of.
    seed : int
        What all of them and the choice of rows come from.
    measurements : tuple of Measurement
        Size after size, and within a size in the order of the methods.
    exact : ExactKernel
        What the exact kernel costs on the measured rows.
    alpha : float
        The α of the pencils.
    spectrum : ndarray
        Eigenvalues of K on up to 512 of the measured rows, descending.
    common_components : int
        The size of the following spectra and images: the largest one at which most methods worked.
    approximate_spectra : dict from str to ndarray
        For every method that worked at that size, the eigenvalues of Z Zᵀ on the same rows.
    kernel_image : ndarray
        K on up to 96 of the measured rows, with similar rows beside each other.
    approximate_images : dict from str to ndarray
        For every method that worked at that size, Z Zᵀ on the same rows.
    time_budget : float or None
        Seconds for the transform of all rows of the data, which :meth:`best` respects.
    memory_budget : int or None
        Bytes for the same.
    complete : bool
        False if the comparison was interrupted: then some measurements are missing.
    data_name : str
        What the data are called; the command line names the file. Empty if unknown.
    date : str
        The day of the measurements as YYYY-MM-DD. Empty if unknown.
    task : {"regression", "classification"} or None
        What is predicted from the features, if there is a target.
    baselines : tuple of Baseline
        Models that do without features, at the same rows, if there is a target.
    remarks : tuple of str
        What is odd about the kernel on these rows, and what to do about it, in sentences.
    exact_kernel : Kernel or None
        The kernel as an object, for :meth:`Recommendation.estimator`.
    """

    kernel: str
    data_shape: tuple[int, int]
    fit_rows: int
    measured_rows: int
    components: tuple[int, ...]
    seeds: int
    seed: int
    measurements: tuple[Measurement, ...]
    exact: ExactKernel
    alpha: float
    spectrum: Vector
    common_components: int
    approximate_spectra: dict[str, Vector]
    kernel_image: Float64
    approximate_images: dict[str, Float64]
    time_budget: float | None = None
    memory_budget: int | None = None
    complete: bool = True
    data_name: str = ""
    date: str = ""
    task: str | None = None
    baselines: tuple[Baseline, ...] = ()
    remarks: tuple[str, ...] = ()
    exact_kernel: Kernel | None = None

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The methods that there are measurements of."""
        return tuple(dict.fromkeys(measurement.method for measurement in self.measurements))

    @cached_property
    def successes(self) -> tuple[Measurement, ...]:
        """The measurements of methods that did not fail."""
        return tuple(measurement for measurement in self.measurements if not measurement.failed)

    def table(self) -> str:
        """Return a table of all measurements as text, the most accurate first at every size."""
        return text_table(self)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it."""
        return html_table(self)

    def best(
        self,
        *,
        components: int | None = None,
        transform_seconds: float | None = None,
        memory_bytes: int | None = None,
        norm: str | None = None,
    ) -> Recommendation:
        """Return the most accurate method within a budget.

        Parameters
        ----------
        components : int or None, default=None
            The largest number of features that is allowed.
        transform_seconds : float or None, default=None
            The longest that the transform of all rows of the data may take, estimated in
            proportion from the measured rows. None is the budget of the comparison, if any.
        memory_bytes : int or None, default=None
            The same for memory: the fitted map, and the transform of all rows at once.
        norm : {"frobenius", "operator", "prediction"} or None, default=None
            The error that is to be small: that of the kernel in one of two norms, or that of
            predictions. None is "prediction" if there is a target, and else "frobenius".

        Returns
        -------
        Recommendation
            The method, its size and error, and the reason; its `estimator()` is ready to fit.

        Raises
        ------
        ValueError
            Where nothing that was measured is within the budget.
        """
        return recommend(
            self, components=components, seconds=transform_seconds, memory=memory_bytes, norm=norm
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, without the images, as what :func:`json.dumps` takes."""
        left_out = {"kernel_image", "approximate_images", "measurements", "exact", "baselines"}
        left_out |= {"exact_kernel"}
        figures = {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.name not in left_out
        }
        figures["exact"] = dataclasses.asdict(self.exact)
        figures["measurements"] = [measurement.to_dict() for measurement in self.measurements]
        figures["baselines"] = [dataclasses.asdict(baseline) for baseline in self.baselines]
        return figures

    def to_frame(self) -> Any:
        """Return the measurements as a pandas data frame, one row each.

        Raises
        ------
        ImportError
            Where pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas, which is not installed: pip install pandas, or use to_dict."
            ) from error
        names = [field.name for field in dataclasses.fields(Measurement)]
        columns = [*names, "memory_bytes"]
        return pd.DataFrame(
            [[getattr(measured, name) for name in columns] for measured in self.measurements],
            columns=columns,
        )

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write one page with all figures, which needs neither network nor other files.

        Parameters
        ----------
        path : str or path
            The file, which appears under this name when it is complete.
        """
        # Loaded when it is first needed: those who want the table need neither charts nor Jinja2.
        from powersketch.comparison.page import write_page

        write_page(self, path)


def _plain(value: Any) -> Any:
    """Return the value as what JSON knows."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    return value

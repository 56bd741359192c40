"""Kernel ridge regression and classification on feature maps."""

from powersketch.kernel_ridge.choosing.maps import Choice
from powersketch.kernel_ridge.choosing.metric import LearnedMetric
from powersketch.kernel_ridge.choosing.model import StraightLineWarning
from powersketch.kernel_ridge.classifier import SketchedKernelRidgeClassifier
from powersketch.kernel_ridge.regressor import SketchedKernelRidge
from powersketch.kernel_ridge.rows.training_rows import (
    LEFT_OUT,
    KnownTargets,
    TrainingRows,
    checked_weights,
    warn_of_outlying_targets,
)
from powersketch.kernel_ridge.settings import NEED_ALL_ROWS
from powersketch.kernel_ridge.solving.features import Features, FeatureSums
from powersketch.kernel_ridge.solving.many_rows import FarRows, FeatureFit, ManyRows, RowPreparation
from powersketch.kernel_ridge.solving.path import RegularisationWarning
from powersketch.kernel_ridge.solving.preconditioners import Trial
from powersketch.kernel_ridge.solving.row_products import DenseFeatures, LandmarkValues, SideMeans
from powersketch.kernel_ridge.solving.row_sketch import CoarseSketchWarning, RowSketchReport
from powersketch.kernel_ridge.solving.statistics import (
    RidgeSolution,
    RidgeStatistics,
    block_statistics,
)

__all__ = [
    "LEFT_OUT",
    "NEED_ALL_ROWS",
    "Choice",
    "CoarseSketchWarning",
    "DenseFeatures",
    "FarRows",
    "FeatureFit",
    "FeatureSums",
    "Features",
    "KnownTargets",
    "LandmarkValues",
    "LearnedMetric",
    "ManyRows",
    "RegularisationWarning",
    "RidgeSolution",
    "RidgeStatistics",
    "RowPreparation",
    "RowSketchReport",
    "SideMeans",
    "SketchedKernelRidge",
    "SketchedKernelRidgeClassifier",
    "StraightLineWarning",
    "TrainingRows",
    "Trial",
    "block_statistics",
    "checked_weights",
    "warn_of_outlying_targets",
]

"""Kernel ridge regression and classification on feature maps."""

from powersketch.kernel_ridge.choice import Choice
from powersketch.kernel_ridge.classifier import SketchedKernelRidgeClassifier
from powersketch.kernel_ridge.features import Features, FeatureSums
from powersketch.kernel_ridge.many_rows import FarRows, FeatureFit, ManyRows, RowPreparation
from powersketch.kernel_ridge.metric import LearnedMetric
from powersketch.kernel_ridge.path import RegularisationWarning
from powersketch.kernel_ridge.regressor import SketchedKernelRidge
from powersketch.kernel_ridge.row_products import DenseFeatures, LandmarkValues
from powersketch.kernel_ridge.row_sketch import CoarseSketchWarning, RowSketchReport
from powersketch.kernel_ridge.search import StraightLineWarning
from powersketch.kernel_ridge.settings import NEED_ALL_ROWS
from powersketch.kernel_ridge.statistics import RidgeSolution, RidgeStatistics, block_statistics
from powersketch.kernel_ridge.training_rows import (
    LEFT_OUT,
    KnownTargets,
    TrainingRows,
    checked_weights,
    warn_of_outlying_targets,
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
    "SketchedKernelRidge",
    "SketchedKernelRidgeClassifier",
    "StraightLineWarning",
    "TrainingRows",
    "block_statistics",
    "checked_weights",
    "warn_of_outlying_targets",
]

"""Kernel ridge regression and classification on feature maps."""

from powersketch.kernel_ridge.choice import Choice
from powersketch.kernel_ridge.classifier import SketchedKernelRidgeClassifier
from powersketch.kernel_ridge.metric import LearnedMetric
from powersketch.kernel_ridge.path import RegularisationWarning
from powersketch.kernel_ridge.regressor import SketchedKernelRidge
from powersketch.kernel_ridge.row_sketch import CoarseSketchWarning, RowSketchReport
from powersketch.kernel_ridge.search import StraightLineWarning
from powersketch.kernel_ridge.statistics import RidgeSolution, RidgeStatistics, block_statistics

__all__ = [
    "Choice",
    "CoarseSketchWarning",
    "LearnedMetric",
    "RegularisationWarning",
    "RidgeSolution",
    "RidgeStatistics",
    "RowSketchReport",
    "SketchedKernelRidge",
    "SketchedKernelRidgeClassifier",
    "StraightLineWarning",
    "block_statistics",
]

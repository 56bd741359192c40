"""The names that users may rely on, in the order in which the API pages show them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Group:
    """Names of one module that belong together, and a sentence about them."""

    title: str
    sentence: str
    module: str
    names: tuple[str, ...]

    def paths(self) -> list[str]:
        return [f"{self.module}.{name}" for name in self.names]


GROUPS = (
    Group(
        "Feature maps",
        "Transformers in the sense of scikit-learn: features whose inner products are a kernel.",
        "powersketch",
        (
            "PolynomialSketch",
            "GaussianSketch",
            "ArcCosineSketch",
            "NeuralTangentSketch",
            "DotProductSketch",
            "LeverageNystroem",
        ),
    ),
    Group(
        "Models",
        "Kernel ridge regression and classification, and the metric that they learn.",
        "powersketch",
        ("SketchedKernelRidge", "SketchedKernelRidgeClassifier", "LearnedMetric"),
    ),
    Group(
        "Tables and files",
        "Tables of mixed columns as numbers; models as files that are safe to load.",
        "powersketch",
        ("TablePreparation", "save", "load"),
    ),
    Group(
        "Kernel systems",
        "Linear systems with a kernel matrix.",
        "powersketch",
        ("solve_kernel_system", "SketchPreconditioner"),
    ),
    Group("Comparison", "All methods side by side.", "powersketch", ("compare",)),
    Group(
        "Results of comparisons",
        "What a comparison returns.",
        "powersketch.comparison",
        ("Comparison", "Measurement", "Recommendation", "ExactKernel"),
    ),
    Group(
        "Reports",
        "A model on rows held out, beside a linear model and gradient boosting.",
        "powersketch.reports",
        ("assess", "automatic_model"),
    ),
    Group(
        "Accuracy",
        "How far features are from the kernel, and how many are needed.",
        "powersketch.accuracy",
        (
            "certify",
            "statistical_dimension",
            "required_components",
            "Certificate",
            "EntrywiseError",
            "Interval",
            "RequiredComponents",
            "SpectralError",
            "StatisticalDimension",
        ),
    ),
    Group(
        "Exact kernels",
        "The ground truth: matrices, diagonals, products with vectors, gradients, power series.",
        "powersketch.kernels",
        (
            "as_kernel",
            "Kernel",
            "Linear",
            "Polynomial",
            "Gaussian",
            "ArcCosine",
            "NeuralTangent",
            "DotProduct",
            "WithLinear",
        ),
    ),
    Group(
        "Sums and reports of models",
        "Sums that merge, for rows that come in blocks or from several machines; what a fit tells.",
        "powersketch.kernel_ridge",
        (
            "block_statistics",
            "RidgeStatistics",
            "RidgeSolution",
            "Choice",
            "RowSketchReport",
            "RegularisationWarning",
            "StraightLineWarning",
            "CoarseSketchWarning",
        ),
    ),
    Group(
        "Linear algebra",
        "Operators, factors and iterations, for solvers of your own.",
        "powersketch.linalg",
        (
            "conjugate_gradients",
            "preconditioned_gradient",
            "SolverResult",
            "SymmetricOperator",
            "KernelOperator",
            "FactorOperator",
            "CholeskyFactor",
            "LowRankInverse",
            "TriangularFactor",
            "SquaredFactor",
        ),
    ),
    Group(
        "Errors and warnings",
        "Every message gives the value, the allowed range and the remedy.",
        "powersketch.exceptions",
        ("InputError", "InputTypeError", "OutlierWarning", "FarRowWarning", "RangeWarning"),
    ),
)

SKIPPED_BASES = (
    "BaseEstimator",
    "ClassifierMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "LinearOperator",
    "MultiOutputMixin",
    "RegressorMixin",
    "TransformerMixin",
    "Exception",
    "ReprHTMLMixin",
    "_MetadataRequester",
    "_SetOutputMixin",
    "object",
)
"""Classes of others whose members have their pages elsewhere."""


def public_objects() -> dict[str, Any]:
    """Return every public function and class by its path."""
    return {
        path: getattr(importlib.import_module(group.module), name)
        for group in GROUPS
        for name, path in zip(group.names, group.paths(), strict=True)
    }

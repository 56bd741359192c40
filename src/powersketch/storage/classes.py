"""The classes that a stored model may consist of: a fixed list, whatever a file asks for."""

from __future__ import annotations

from functools import cache
from typing import Any

import sklearn
from sklearn import (
    compose,
    decomposition,
    feature_selection,
    impute,
    linear_model,
    pipeline,
    preprocessing,
    svm,
)
from sklearn.base import BaseEstimator

# Imported for the classes that they register.
from powersketch import feature_maps, kernel_ridge, nystroem, tables
from powersketch.storable import STORABLE

_ROOMS = (feature_maps, kernel_ridge, nystroem, tables)
_OF_SCIKIT_LEARN: tuple[type, ...] = (
    pipeline.Pipeline,
    pipeline.FeatureUnion,
    compose.ColumnTransformer,
    compose.TransformedTargetRegressor,
    preprocessing.StandardScaler,
    preprocessing.MinMaxScaler,
    preprocessing.MaxAbsScaler,
    preprocessing.RobustScaler,
    preprocessing.Normalizer,
    preprocessing.PowerTransformer,
    preprocessing.QuantileTransformer,
    preprocessing.OneHotEncoder,
    preprocessing.OrdinalEncoder,
    preprocessing.LabelBinarizer,
    preprocessing.LabelEncoder,
    preprocessing.FunctionTransformer,
    impute.SimpleImputer,
    impute.MissingIndicator,
    feature_selection.VarianceThreshold,
    decomposition.PCA,
    decomposition.TruncatedSVD,
    linear_model.LinearRegression,
    linear_model.Ridge,
    linear_model.RidgeCV,
    linear_model.RidgeClassifier,
    linear_model.RidgeClassifierCV,
    linear_model.Lasso,
    linear_model.ElasticNet,
    linear_model.LogisticRegression,
    svm.LinearSVC,
    svm.LinearSVR,
)
SCIKIT_LEARN_VERSION = sklearn.__version__


@cache
def allowed_classes() -> dict[str, type]:
    """Return the classes by the names that files have for them."""
    return STORABLE | {f"sklearn.{cls.__name__}": cls for cls in _OF_SCIKIT_LEARN}


@cache
def _names() -> dict[type, str]:
    return {cls: name for name, cls in allowed_classes().items()}


def name_of(cls: type) -> str | None:
    """Return the name of a class in files, or None if it cannot be stored."""
    return _names().get(cls)


def class_called(name: Any) -> type:
    """Return the class of a name; nothing outside the list can be had."""
    if not isinstance(name, str) or name not in allowed_classes():
        raise ValueError(
            f"it has an object of the class {name!r}, which this version does not know"
        )
    return allowed_classes()[name]


def is_estimator(cls: type) -> bool:
    """Tell whether objects of a class have parameters and fitted attributes, not fields."""
    return issubclass(cls, BaseEstimator)


def storable_estimators() -> str:
    """Return the names of all estimators that can be stored, for messages."""
    return ", ".join(sorted(name for name, cls in allowed_classes().items() if is_estimator(cls)))

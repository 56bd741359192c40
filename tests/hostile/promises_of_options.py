"""Promises about parameters: none is ignored in silence, and none makes the work endless."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.hostile.outcomes import demand, is_clear_refusal
from tests.hostile.subjects import Subject

# Values other than the defaults; an option counts as used if one of them changes the result.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "base_sketch": ("srht", "countsketch", "osnap", "gaussian", "rademacher"),
    "expansion": ("mean", "none"),
    "norm_preserving": (False,),
    "internal_components": (512,),
    "tail": ("truncate", "sample", "fit"),
    "tail_eps": (0.2, 1e-6),
    "composition": ("whole", "layers"),
    "compress_from": (512,),
    "power_method": ("tree", "tensorsketch", "ctr"),
    "alphas": ([0.5, 2.0],),
    "eps": (0.3,),
    "tol": (1e-2,),
    "time_budget": (5.0,),
    "memory_budget": (1e9,),
    "kernel": ("polynomial", "arc-cosine"),
    "kernel_params": ({"gamma": 0.3},),
    "n_components": (7,),
}
# What an option needs beside it to have a meaning.
_BESIDE: dict[str, dict[str, Any]] = {"composition": {"depth": 2}}
# Where an option has a meaning although a small problem may not show it: (option, word in the name)
_MEANT = (
    ("eps", "row-sketch"),
    ("tol", "exact"),
    # A limit of every fit, of which a small one has no need.
    ("memory_budget", ""),
    ("time_budget", "auto"),
    ("time_budget", "default"),
)
HUGE: dict[str, dict[str, Any]] = {
    "degree=10**4": {"degree": 10**4},
    "degree=10**6": {"degree": 10**6},
    "degree=10**30": {"degree": 10**30},
    "n_components=10**30": {"n_components": 10**30},
    "internal_components=2**31": {"internal_components": 2**31},
    "internal_components=2**62": {"internal_components": 2**62},
    "gamma=1e300": {"gamma": 1e300},
    "gamma=1e-300": {"gamma": 1e-300},
    "coef0=1e300": {"coef0": 1e300},
    "weight_variance=1e300": {"weight_variance": 1e300},
    "bias_variance=1e300": {"bias_variance": 1e300},
    "tail_eps=1e-300": {"tail_eps": 1e-300},
    "n_jobs=10**6": {"n_jobs": 10**6},
    "n_jobs=-(10**6)": {"n_jobs": -(10**6)},
    "alpha=1e300": {"alpha": 1e300},
    "alpha=1e-300": {"alpha": 1e-300},
    "random_state=2**32 - 1": {"random_state": 2**32 - 1},
}


def is_for(subject: Subject, changes: dict[str, Any]) -> bool:
    """Tell whether the estimator has these parameters, and is not known to be slow with them."""
    parameters = subject.estimator().get_params(deep=False)
    # The time of these methods is proportional to the degree, and their documentation says so.
    slow = parameters.get("method") in ("tensorsketch", "ctr", "adaptive")
    return set(changes) <= set(parameters) and not (slow and changes.get("degree", 0) > 5000)


def may_be_idle(subject: Subject, option: str) -> bool:
    """Tell whether an option belongs to the estimator, and would show if it were used."""
    if option not in subject.estimator().get_params(deep=False):
        return False
    return not any(option == name and word in subject.name for name, word in _MEANT)


def option_is_used_or_refused(subject: Subject, option: str, seed: int) -> None:
    """An option changes the result, or one of its values is refused for having no effect."""
    X = _long_rows(seed)
    beside = _BESIDE.get(option, {})
    plain = _result(subject, X, **beside)
    values = [value for value in OPTIONS[option] if value != getattr(subject.estimator(), option)]
    for value in values:
        try:
            found = _result(subject, X, **{**beside, option: value})
        except Exception as error:
            demand(is_clear_refusal(error), f"{option}={value!r}: {type(error).__name__}: {error}")
            return
        if not np.array_equal(found, plain):
            return
    demand(False, f"{option}={values} was ignored in silence")


def huge_parameter_is_bearable(subject: Subject, changes: dict[str, Any], seed: int) -> None:
    """The work is bounded, and what comes out is finite; run where processor time is limited."""
    X = np.random.default_rng(seed).normal(size=(20, 12))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    values = subject.apply(subject.fit(X, **changes), X)
    demand(np.isfinite(values).all(), "not all numbers are finite")


def _result(subject: Subject, X: NDArray[np.float64], **changes: Any) -> NDArray[Any]:
    return subject.apply(subject.fit(X, **changes), X)


def _long_rows(seed: int) -> NDArray[np.float64]:
    """Return rows that are longer than the internal length of every map, so that T is in use."""
    random = np.random.default_rng([seed, 9])
    X = random.normal(loc=0.3, size=(30, 600))
    X *= 0.9 / np.linalg.norm(X, axis=1, keepdims=True)
    return X

"""The methods that take part in comparisons, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler

from powersketch.exceptions import InputError, InputTypeError
from powersketch.feature_maps import FeatureMap, map_for
from powersketch.kernels import (
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    NeuralTangent,
    Polynomial,
)
from powersketch.nystroem import LeverageNystroem
from powersketch.powers import POWER_METHODS

Kind = Literal["oblivious", "data-dependent", "peer"]


@dataclass(frozen=True)
class Method:
    """A way to make features.

    Parameters
    ----------
    name : str
        What users call it.
    kind : {"oblivious", "data-dependent", "peer"}
        A sketch, which is drawn without the data but for its mean and scale; a map that is chosen
        by the data; or a map of scikit-learn.
    description : str
        One line about it.
    kernels : tuple of classes
        The kernels that it approximates.
    reason : str
        Why it does not approximate others.
    build : callable
        Takes kernel, size, seed and number of threads, and returns a transformer that is not
        fitted.
    """

    name: str
    kind: Kind
    description: str
    kernels: tuple[type[Kernel], ...]
    reason: str
    build: Callable[[Kernel, int, int, int | None], Any]

    def supports(self, kernel: Kernel) -> str | None:
        """Return None if it can approximate the kernel, else the reason why not."""
        return None if isinstance(kernel, self.kernels) else self.reason


def _sketch(**changes: Any) -> Callable[[Kernel, int, int, int | None], FeatureMap]:
    """Return how the kernel's own sketch is made, with some of its parameters changed.

    A change applies where the sketch has the parameter: the Gaussian one has no expansion.
    """

    def build(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> FeatureMap:
        sketch = map_for(kernel, size, random_state=seed, n_jobs=n_jobs)
        own = sketch.get_params(deep=False)
        sketch.set_params(**{name: value for name, value in changes.items() if name in own})
        return sketch

    return build


def _powers_by(method: str, **changes: Any) -> Callable[[Kernel, int, int, int | None], FeatureMap]:
    """Return how a sketch is made that takes powers by a method; two parameters may name it."""
    name = "squaring" if method == "power" else method
    others = _sketch(method="power", power_method=name, **changes)
    polynomial = _sketch(method=method, **changes)

    def build(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> FeatureMap:
        chosen = polynomial if isinstance(kernel, Polynomial) else others
        return chosen(kernel, size, seed, n_jobs)

    return build


def _compressed(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> FeatureMap:
    return _sketch(compress_from=4 * size)(kernel, size, seed, n_jobs)


def _nystroem(landmarks: str) -> Callable[[Kernel, int, int, int | None], LeverageNystroem]:
    def build(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> LeverageNystroem:
        return LeverageNystroem(
            kernel, n_components=size, landmarks=landmarks, random_state=seed, n_jobs=n_jobs
        )

    return build


def _polynomial_parameters(kernel: Kernel) -> dict[str, Any]:
    return {name: getattr(kernel, name) for name in ("degree", "gamma", "coef0")}


def _peer_count_sketch(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> Any:
    parameters = _polynomial_parameters(kernel)
    return PolynomialCountSketch(**parameters, n_components=size, random_state=seed)


def _peer_fourier(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> Any:
    gamma = kernel.gamma if isinstance(kernel, Gaussian) else None
    return RBFSampler(gamma=gamma, n_components=size, random_state=seed)


def _peer_nystroem(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> Any:
    if isinstance(kernel, Gaussian):
        parameters: dict[str, Any] = {"kernel": "rbf", "gamma": kernel.gamma}
    else:
        parameters = {"kernel": "polynomial", **_polynomial_parameters(kernel)}
    return Nystroem(**parameters, n_components=size, random_state=seed, n_jobs=n_jobs)


_SKETCHED = (Polynomial, Gaussian, ArcCosine, NeuralTangent, DotProduct)
_UNKNOWN_KERNEL = "there is no sketch of this kernel"
_POLYNOMIAL_ONLY = "it is made for the polynomial kernel"
_GAUSSIAN_ONLY = "it is made for the Gaussian kernel"

_POWERS = {
    "power": "repeated squaring with one pair sketch",
    "tree": "a tree of independent pair sketches",
    "tensorsketch": "products of count sketches by Fourier transforms",
    "ctr": "complex products, real and imaginary parts side by side",
}


def _power_methods() -> list[Method]:
    """Return every oblivious way to sketch powers, as it is meant to be used and literally."""
    methods = []
    for name in POWER_METHODS:
        text = _POWERS.get(name, name)
        literal = {"norm_preserving": False, "expansion": "none"}
        for suffix, changes, remark in (
            ("", {}, "exact norms, expansion around the mean where it helps"),
            ("-literal", literal, "linear in every power: no exact norms, no expansion"),
        ):
            build = _powers_by(name, **changes)
            description = f"{text}; {remark}"
            methods.append(
                Method(name + suffix, "oblivious", description, _SKETCHED, _UNKNOWN_KERNEL, build)
            )
    return methods


_FURTHER_SKETCHES = [
    Method(
        "auto",
        "oblivious",
        "the best of power, single_power and fourier on a sample of the rows",
        (Gaussian,),
        _GAUSSIAN_ONLY,
        _sketch(method="auto"),
    ),
    Method(
        "fourier",
        "oblivious",
        "cosines and sines of structured orthogonal projections",
        (Gaussian,),
        _GAUSSIAN_ONLY,
        _sketch(method="fourier"),
    ),
    Method(
        "single_power",
        "oblivious",
        "one high power in place of the Gaussian function",
        (Gaussian,),
        _GAUSSIAN_ONLY,
        _sketch(method="single_power"),
    ),
    Method(
        "random",
        "oblivious",
        "activations or gradients of random neurons",
        (ArcCosine, NeuralTangent),
        "it is made for the kernels of neural networks",
        _sketch(method="random"),
    ),
    Method(
        "power-compressed",
        "data-dependent",
        "the main directions of a sketch four times as large",
        (Polynomial,),
        _POLYNOMIAL_ONLY,
        _compressed,
    ),
    Method(
        "adaptive",
        "data-dependent",
        "monomials drawn by ridge leverage scores",
        (Polynomial,),
        _POLYNOMIAL_ONLY,
        _sketch(method="adaptive"),
    ),
]

_LANDMARKS = [
    Method(
        "nystroem",
        "data-dependent",
        "landmarks drawn by recursive ridge leverage scores",
        (Kernel,),
        "",
        _nystroem("leverage"),
    ),
    Method(
        "nystroem-uniform",
        "data-dependent",
        "landmarks drawn uniformly",
        (Kernel,),
        "",
        _nystroem("uniform"),
    ),
]

_PEERS = [
    Method(
        "sklearn-countsketch",
        "peer",
        "scikit-learn's PolynomialCountSketch",
        (Polynomial,),
        _POLYNOMIAL_ONLY,
        _peer_count_sketch,
    ),
    Method(
        "sklearn-rbf",
        "peer",
        "scikit-learn's RBFSampler",
        (Gaussian,),
        _GAUSSIAN_ONLY,
        _peer_fourier,
    ),
    Method(
        "sklearn-nystroem",
        "peer",
        "scikit-learn's Nystroem",
        (Polynomial, Gaussian),
        "scikit-learn computes other kernels pair by pair in Python, which takes minutes",
        _peer_nystroem,
    ),
]

METHODS: dict[str, Method] = {
    method.name: method for method in (*_power_methods(), *_FURTHER_SKETCHES, *_LANDMARKS, *_PEERS)
}


def chosen_methods(names: Any, kernel: Kernel) -> tuple[Method, ...]:
    """Return the methods of these names, or all that can do the kernel."""
    able = [name for name, method in METHODS.items() if method.supports(kernel) is None]
    if names is None:
        return tuple(METHODS[name] for name in able)
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(
            f"methods={names!r} is not a list of names; allowed are {', '.join(able)} for "
            f"{kernel}: pass for instance ['power', 'nystroem']."
        )
    unique = list(dict.fromkeys(names))
    if not unique:
        raise InputError(f"methods is empty; choose from {', '.join(able)}, or None for all.")
    for name in unique:
        _check_method(name, kernel, able)
    return tuple(METHODS[name] for name in unique)


def _check_method(name: str, kernel: Kernel, able: list[str]) -> None:
    if name not in METHODS:
        raise InputError(f"method {name!r} is unknown; those for {kernel} are {', '.join(able)}.")
    reason = METHODS[name].supports(kernel)
    if reason is not None:
        raise InputError(
            f"method {name!r} cannot do {kernel}: {reason}. Use one of {', '.join(able)}."
        )

"""One integer seed gives named, independent random streams, the same on every machine."""

from __future__ import annotations

import hashlib
import numbers
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from powersketch.arrays import Vector
from powersketch.exceptions import InputError, InputTypeError
from powersketch.parameters import checked_integer
from powersketch.storable import storable

_SEED_LIMIT = 2**63
_RANDOM_STATE_LIMIT = 2**32
_INTEGER_LIMIT = 2**32
_LARGEST_COUNT = 2**62


@storable
@dataclass(frozen=True, slots=True)
class RandomStreams:
    """Random numbers that depend only on a seed and on the name of the stream.

    The words of a stream are the raw output of Philox4x64-10 [SMDS11] with key ``[seed, h]`` and
    counter 0, where ``h`` is the first eight bytes, little-endian, of the SHA-256 of the stream's
    full name in UTF-8. The full name is ``path + "/" + name``, or ``name`` alone where the path
    is empty. NumPy promises that raw Philox words never change; everything else is made from
    them by integer operations and by floating-point operations that IEEE 754 rounds exactly. No
    logarithm or cosine of the platform is used, because their last bit differs between CPUs.

    Asking twice for the same name gives the same numbers, whatever was asked in between.

    Parameters
    ----------
    seed : int
        An integer in [0, 2**63).
    path : str, default=""
        Prefix of every name asked from this object.

    Examples
    --------
    >>> from powersketch.random_streams import RandomStreams
    >>> streams = RandomStreams(seed=7)
    >>> streams.signs("signs", 8)
    array([-1,  1,  1,  1,  1, -1, -1, -1], dtype=int8)
    >>> leaf = streams.child("leaf")
    >>> leaf
    RandomStreams(seed=7, path='leaf')
    >>> bool((leaf.words("signs", 3) == streams.words("leaf/signs", 3)).all())
    True
    """

    seed: int
    path: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", _checked("seed", self.seed, 0, _SEED_LIMIT - 1))

    def child(self, name: str) -> RandomStreams:
        """Return the streams whose names all begin with ``name``.

        Examples
        --------
        >>> RandomStreams(7).child("leaf").child("left")
        RandomStreams(seed=7, path='leaf/left')
        """
        return RandomStreams(self.seed, self._full_name(name))

    def words(self, name: str, count: int) -> NDArray[np.uint64]:
        """Return the first ``count`` words of a stream, uniform on 64 bits.

        A longer draw begins with the shorter one.

        Examples
        --------
        >>> RandomStreams(7).words("demo", 2)
        array([ 9543614255905920084, 12764237637921642985], dtype=uint64)
        """
        count = _checked("count", count, 0)
        digest = hashlib.sha256(self._full_name(name).encode()).digest()
        key = np.array([self.seed, int.from_bytes(digest[:8], "little")], dtype=np.uint64)
        words: NDArray[np.uint64] = np.random.Philox(key=key).random_raw(count)
        return words

    def key(self, name: str) -> int:
        """Return the first word of a stream, the key of a hash.

        Examples
        --------
        >>> RandomStreams(7).key("demo")
        9543614255905920084
        """
        return int(self.words(name, 1)[0])

    def signs(self, name: str, count: int) -> NDArray[np.int8]:
        """Return independent fair signs, 64 from each word.

        Sign i is +1 where bit ``i % 64`` of word ``i // 64`` is 0, and -1 where it is 1.

        Examples
        --------
        >>> RandomStreams(7).signs("demo", 6)
        array([ 1,  1, -1,  1, -1,  1], dtype=int8)
        """
        count = _checked("count", count, 0)
        little_endian_bytes = self.words(name, -(-count // 64)).astype("<u8").view(np.uint8)
        bits = np.unpackbits(little_endian_bytes, count=count, bitorder="little")
        signs = bits.view(np.int8)
        signs *= -2
        signs += 1
        return signs

    def permutation(self, name: str, size: int) -> NDArray[np.int64]:
        """Return a uniformly random order of ``0, ..., size - 1``: the stable argsort of words.

        Examples
        --------
        >>> RandomStreams(7).permutation("demo", 5)
        array([0, 2, 1, 4, 3])
        """
        size = _checked("size", size, 0)
        return np.argsort(self.words(name, size), kind="stable").astype(np.int64, copy=False)

    def sample(self, name: str, population: int, count: int) -> NDArray[np.int64]:
        """Return distinct integers drawn from ``0, ..., population - 1``, in random order.

        They are the first ``count`` entries of ``permutation(name, population)``.

        Examples
        --------
        >>> RandomStreams(7).sample("demo", population=5, count=2)
        array([0, 2])
        """
        population = _checked("population", population, 0)
        count = _checked("count", count, 0)
        if count > population:
            raise InputError(
                f"cannot draw count={count} distinct integers from a population of {population}; "
                f"count must lie in [0, {population}]: draw fewer or enlarge the population."
            )
        # The copy lets the rest of the permutation be freed.
        return self.permutation(name, population)[:count].copy()

    def coordinates(self, name: str, length: int, count: int) -> NDArray[np.int32]:
        """Return integers drawn from ``0, ..., length - 1``, each about equally often.

        They are whole permutations, the streams ``name/0``, ``name/1``, …, and a part of one, so
        that how often integers occur differs by at most one.

        Examples
        --------
        >>> RandomStreams(7).coordinates("demo", length=3, count=5)
        array([1, 0, 2, 2, 1], dtype=int32)
        """
        rounds = range(-(-count // length))
        samples = [self.permutation(f"{name}/{i}", length) for i in rounds]
        return np.concatenate(samples)[:count].astype(np.int32)

    def integers(self, name: str, count: int, high: int) -> NDArray[np.int64]:
        """Return independent integers uniform on ``0, ..., high - 1``, for ``high`` up to 2**32.

        They are ``(upper * high) >> 32`` for the upper 32 bits of each word: a probability differs
        from ``1 / high`` by less than ``2**-32``.

        Examples
        --------
        >>> RandomStreams(7).integers("demo", count=5, high=10)
        array([5, 6, 6, 9, 8])
        """
        high = _checked("high", high, 1, _INTEGER_LIMIT)
        upper = self.words(name, count) >> np.uint64(32)
        return ((upper * np.uint64(high)) >> np.uint64(32)).astype(np.int64)

    def uniforms(self, name: str, count: int) -> Vector:
        """Return independent multiples of ``2**-53``, uniform on [0, 1).

        Examples
        --------
        >>> RandomStreams(7).uniforms("demo", 3).round(6)
        array([0.51736 , 0.691951, 0.660563])
        """
        return self._steps(name, count).astype(np.float64) * 2.0**-53

    def normal(self, name: str, count: int) -> Vector:
        """Return independent standard normal numbers.

        They are the normal quantiles of ``((word >> 11) + 0.5) * 2**-53``, by algorithm AS 241,
        routine PPND16 [Wic88].

        Examples
        --------
        >>> RandomStreams(7).normal("demo", 3).round(6)
        array([0.04353 , 0.501387, 0.414001])
        """
        # Centred before the half is added: near 1 the uniform itself would need 54 bits.
        steps = self._steps(name, count).astype(np.int64) - 2**52
        centred = (steps.astype(np.float64) + 0.5) * 2.0**-53
        return _centred_normal_quantile(centred)

    def _steps(self, name: str, count: int) -> NDArray[np.uint64]:
        """Return the upper 53 bits of the words."""
        return self.words(name, count) >> np.uint64(11)

    def _full_name(self, name: str) -> str:
        if not name:
            raise InputError("got an empty stream name; a name has at least one character.")
        return f"{self.path}/{name}" if self.path else name


def _checked(name: str, value: object, lowest: int, highest: int = _LARGEST_COUNT) -> int:
    """Return a number in its range; this is asked so often that the usual case is told apart."""
    if type(value) is int and lowest <= value <= highest:
        return value
    return checked_integer(name, value, lowest, highest)


def seed_from(random_state: int | np.random.RandomState | None) -> int:
    """Turn scikit-learn's ``random_state`` into the seed of :class:`RandomStreams`.

    Parameters
    ----------
    random_state : int, RandomState or None
        An integer in [0, 2**32) is the seed itself. A ``RandomState`` gives one integer and is
        advanced by that draw. None takes fresh entropy from the operating system.

    Returns
    -------
    int
        In [0, 2**32), so that it can be given back as ``random_state``.

    Examples
    --------
    >>> from powersketch.random_streams import seed_from
    >>> seed_from(42)
    42
    """
    if random_state is None:
        return secrets.randbelow(_RANDOM_STATE_LIMIT)
    if isinstance(random_state, numbers.Integral):
        return _checked("random_state", random_state, 0, _RANDOM_STATE_LIMIT - 1)
    try:
        generator = check_random_state(random_state)
    except ValueError as error:
        raise InputTypeError(
            f"random_state={random_state!r} is a {type(random_state).__name__}; allowed are an "
            "integer in [0, 2**32), a numpy.random.RandomState and None: pass an integer."
        ) from error
    return int(generator.randint(0, _RANDOM_STATE_LIMIT, dtype=np.int64))


# The rational approximations of PPND16 [Wic88], constant term first, named by where they hold.
_CENTRE_NUMERATOR = (
    3.3871328727963666080e0,
    1.3314166789178437745e2,
    1.9715909503065514427e3,
    1.3731693765509461125e4,
    4.5921953931549871457e4,
    6.7265770927008700853e4,
    3.3430575583588128105e4,
    2.5090809287301226727e3,
)
_CENTRE_DENOMINATOR = (
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
)
_TAIL_NUMERATOR = (
    1.42343711074968357734e0,
    4.63033784615654529590e0,
    5.76949722146069140550e0,
    3.64784832476320460504e0,
    1.27045825245236838258e0,
    2.41780725177450611770e-1,
    2.27238449892691845833e-2,
    7.74545014278341407640e-4,
)
_TAIL_DENOMINATOR = (
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)
_FAR_TAIL_NUMERATOR = (
    6.65790464350110377720e0,
    5.46378491116411436990e0,
    1.78482653991729133580e0,
    2.96560571828504891230e-1,
    2.65321895265761230930e-2,
    1.24266094738807843860e-3,
    2.71155556874348757815e-5,
    2.01033439929228813265e-7,
)
_FAR_TAIL_DENOMINATOR = (
    1.0,
    5.99832206555887937690e-1,
    1.36929880922735805310e-1,
    1.48753612908506148525e-2,
    7.86869131145613259100e-4,
    1.84631831751005468180e-5,
    1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)

_SQRT_HALF = 0.7071067811865476
_LOG_2 = 0.6931471805599453
# |(m - 1) / (m + 1)| <= 0.172 on [sqrt(1/2), sqrt(2)], so the next term is below 2**-60.
_ATANH_SERIES = tuple(1.0 / (2 * k + 1) for k in range(12))


def _centred_normal_quantile(centred: Vector) -> Vector:
    """Return the x with Phi(x) = 1/2 + centred, for centred inside (-1/2, 1/2)."""
    quantile = np.empty_like(centred)
    in_tail = np.abs(centred) > 0.425
    middle = centred[~in_tail]
    quantile[~in_tail] = middle * _ratio(
        _CENTRE_NUMERATOR, _CENTRE_DENOMINATOR, 0.180625 - middle * middle
    )
    ends = centred[in_tail]
    quantile[in_tail] = np.copysign(_upper_tail_quantile(0.5 - np.abs(ends)), ends)
    return quantile


def _upper_tail_quantile(tail: Vector) -> Vector:
    """Return the x > 0 with 1 - Phi(x) = tail, for tail at most 0.075."""
    depth = np.sqrt(-_log(tail))
    quantile = _ratio(_TAIL_NUMERATOR, _TAIL_DENOMINATOR, depth - 1.6)
    is_far = depth > 5.0
    quantile[is_far] = _ratio(_FAR_TAIL_NUMERATOR, _FAR_TAIL_DENOMINATOR, depth[is_far] - 5.0)
    return quantile


def _log(x: Vector) -> Vector:
    """Return log(x) by log(m 2**e) = e log(2) + 2 atanh((m - 1) / (m + 1))."""
    mantissa, exponent = np.frexp(x)
    is_low = mantissa < _SQRT_HALF
    mantissa = np.where(is_low, 2.0 * mantissa, mantissa)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    atanh = ratio * _horner(_ATANH_SERIES, ratio * ratio)
    return (exponent - is_low).astype(np.float64) * _LOG_2 + 2.0 * atanh


def _ratio(numerator: Sequence[float], denominator: Sequence[float], x: Vector) -> Vector:
    return _horner(numerator, x) / _horner(denominator, x)


def _horner(coefficients: Sequence[float], x: Vector) -> Vector:
    value = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value *= x
        value += coefficient
    return value

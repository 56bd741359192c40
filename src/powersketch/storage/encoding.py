"""From a fitted model to plain data: numbers, texts, lists, arrays and the names of classes.

What JSON has stays as it is. All else is an object with one telling key: a tuple, a dict (whose
keys may be numbers), an array by its place in the file, an object by its class and fields, or by
the call that made it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from contextlib import nullcontext
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import Allowance, memory_allowance
from powersketch.storable import call_of, postponable_names, remembered_method
from powersketch.storage.classes import is_estimator, name_of, storable_estimators
from powersketch.storage.container import DTYPES


def drawn_while_loading() -> Allowance:
    """Return how much the tables may take that are drawn anew when a model is loaded."""
    return Allowance(8 << 20, each=4 << 20)


MOST_TEXTS = 500_000
"""In all arrays of texts of a file: each takes ten times the memory that it takes in the file."""

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial, np.ufunc)
_PLAIN = (bool, int, float, str, type(None))


class Encoder:
    """Turns objects into plain data, and collects their arrays.

    Parameters
    ----------
    compact : bool
        Whether to leave out what predictions do not need.
    by_calls : bool
        Whether to store objects as the calls that made them where the bits are the same.
    """

    def __init__(self, *, compact: bool, by_calls: bool = True) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._compact, self._by_calls = compact, by_calls
        self._places: dict[Any, int] = {}
        self._texts = 0

    def encode(self, value: Any, path: str) -> Any:
        """Return the value as plain data; `path` is what it is called in messages."""
        if type(value) in _PLAIN:
            return value
        if type(value) is list:
            return self._each(value, path)
        if type(value) is tuple:
            return {"tuple": self._each(value, path)}
        if type(value) is dict:
            items = value.items()
            pairs = [[self.encode(k, path), self.encode(v, f"{path}[{k!r}]")] for k, v in items]
            return {"dict": pairs}
        if isinstance(value, np.generic) and not isinstance(value, np.void):
            return {"number": [self._dtype(value.dtype, path), value.item()]}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if sparse.issparse(value):
            return self._sparse(value, path)
        return self._other(value, path)

    def _each(self, values: Any, path: str) -> list[Any]:
        return [self.encode(value, f"{path}[{place}]") for place, value in enumerate(values)]

    def _other(self, value: Any, path: str) -> Any:
        if isinstance(value, slice):
            return {"slice": self._each([value.start, value.stop, value.step], path)}
        if isinstance(value, np.dtype):
            return {"dtype": "O" if value.hasobject else self._dtype(value, path)}
        if isinstance(value, type) and issubclass(value, np.number | np.bool_):
            return {"type": value.__name__}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.encode(value.get_state(legacy=True), path)}
        name = name_of(type(value))
        if name is None:
            raise InputTypeError(_refusal(value, path))
        made = self._call(name, value, path) if self._by_calls else None
        if made is not None:
            return made
        if is_estimator(type(value)):
            return {"class": name, **self._estimator(value, path)}
        names = [field.name for field in dataclasses.fields(value) if field.init]
        fields = {n: self.encode(getattr(value, n), f"{path}.{n}") for n in names}
        return {"class": name, "fields": fields}

    def _estimator(self, estimator: Any, path: str) -> dict[str, Any]:
        """Return the parameters and the fitted attributes of an estimator."""
        names = estimator.get_params(deep=False)
        later = postponable_names(type(estimator))
        for name in later:
            getattr(estimator, name, None)  # made now, if the estimator is fitted
        if hasattr(estimator, "_stored_state"):
            state = estimator._stored_state(compact=self._compact)
        else:
            state = dict(estimator.__getstate__())
        state.pop("_sklearn_version", None)
        encoded = {}
        for name, value in state.items():
            # What is made when it is first needed may take any memory that is available then.
            with memory_allowance(None) if name in later else nullcontext():
                encoded[name] = self.encode(value, f"{path}.{name}")
        fitted = {name: value for name, value in encoded.items() if name not in names}
        return {"parameters": {name: encoded[name] for name in names}, "fitted": fitted}

    def _call(self, name: str, value: Any, path: str) -> Any:
        """Return the call that made an object, if it does so again, within the memory allowed."""
        call = call_of(value)
        if call is None:
            return None
        try:
            again = remembered_method(type(value), call.method)(*call.arguments, **call.options)
        except InputError:
            return None  # it takes more memory than a file may ask for
        checksum = fingerprint(value)
        if fingerprint(again) != checksum:
            return None
        arguments = self._each(call.arguments, path)
        options = {n: self.encode(option, f"{path}.{n}") for n, option in call.options.items()}
        made = [name, call.method]
        return {"made": made, "arguments": arguments, "options": options, "sha256": checksum}

    def _array(self, array: NDArray[Any], path: str) -> Any:
        if array.dtype.kind == "U" or (array.dtype == object and _are_texts(array)):
            return self._text_array(array, path)
        if array.dtype == object:
            return {"objects": self._each(array.ravel().tolist(), path), "shape": [*array.shape]}
        self._dtype(array.dtype, path)
        return {"array": self._place(np.asarray(array))}

    def _place(self, array: NDArray[Any]) -> int:
        """Return the place of an array in the file; equal ones have one place."""
        order = array.flags.f_contiguous and not array.flags.c_contiguous
        content = np.ascontiguousarray(array.T if order else array).reshape(-1)
        digest = hashlib.sha256(content.view(np.uint8).data).digest()
        key = (array.dtype.str, array.shape, order, digest)
        if key not in self._places:
            self._places[key] = len(self.arrays)
            self.arrays.append(array)
        return self._places[key]

    def _text_array(self, array: NDArray[Any], path: str) -> Any:
        """Return texts as the bytes of all and the length of each; −1 stands for None."""
        self._texts += array.size
        if self._texts > MOST_TEXTS:
            raise InputError(
                f"{path} brings the texts of the model to {self._texts}; allowed are {MOST_TEXTS}: "
                "leave out columns of so many categories."
            )
        texts = [None if text is None else str(text).encode() for text in array.ravel().tolist()]
        lengths = np.array([-1 if text is None else len(text) for text in texts], dtype=np.int64)
        joined = np.frombuffer(b"".join(text or b"" for text in texts), dtype=np.uint8)
        places = [self._place(lengths), self._place(joined)]
        return {"texts": places, "shape": [*array.shape], "fixed": array.dtype.kind == "U"}

    def _sparse(self, matrix: Any, path: str) -> Any:
        if matrix.format != "csr":
            raise InputTypeError(
                f"{path} is a sparse matrix of the format {matrix.format}, which cannot be saved: "
                "convert it with tocsr()."
            )
        parts = [self.encode(part, path) for part in (matrix.data, matrix.indices, matrix.indptr)]
        return {"sparse": parts, "shape": [*matrix.shape], "matrix": sparse.isspmatrix(matrix)}

    def _dtype(self, dtype: np.dtype[Any], path: str) -> str:
        name = dtype.newbyteorder("<").str
        if name not in DTYPES:
            raise InputTypeError(
                f"{path} has numbers of the type {dtype}, which cannot be saved; allowed are "
                f"{', '.join(np.dtype(each).name for each in DTYPES)}: convert them."
            )
        return name


def _are_texts(array: NDArray[Any]) -> bool:
    return all(type(entry) is str or entry is None for entry in array.ravel().tolist())


def fingerprint(value: Any) -> str:
    """Return a text that is the same for objects of the same fields, down to the last bit."""
    encoder = Encoder(compact=False, by_calls=False)
    description = json.dumps(encoder.encode(value, ""))
    digest = hashlib.sha256(description.encode())
    for array in encoder.arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _refusal(value: Any, path: str) -> str:
    if isinstance(value, _FUNCTIONS):
        return (
            f"{path} is a function, which a file cannot hold: give numbers in its place, for "
            "instance the coefficients of a series, DotProductSketch([1.0, 0.5, 0.25]); "
            "kernel_.power_series().coefficients(64) gives those of a function."
        )
    return (
        f"{path} is a {type(value).__name__}, which cannot be saved; allowed are pipelines of "
        f"{storable_estimators()}, and the kernels of powersketch.kernels."
    )

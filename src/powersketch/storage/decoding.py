"""From plain data to a fitted model: nothing is run but constructors of a fixed list of classes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch.exceptions import InputError
from powersketch.execution import AllowanceError, memory_allowance
from powersketch.storable import postponable_names, remembered_method
from powersketch.storage.classes import class_called, is_estimator
from powersketch.storage.container import DTYPES
from powersketch.storage.encoding import MOST_TEXTS, drawn_while_loading, fingerprint
from powersketch.storage.field_types import check_part
from powersketch.validation import sound_array

_METHODS = (FunctionType, classmethod, staticmethod)
_TYPES = {np.dtype(each).type.__name__: np.dtype(each).type for each in DTYPES}


class Decoder:
    """Turns plain data into objects, given the arrays of the file.

    Whatever is wrong with the data raises an ordinary exception, whose kind says nothing.
    """

    def __init__(self, file: str, arrays: list[NDArray[Any]]) -> None:
        self._file, self._arrays = file, arrays
        self._texts = 0
        # Once attributes that can be made later have used it up, all others of them are.
        self._allowance_of_later = drawn_while_loading()
        self._by_key: dict[str, Callable[[Any], Any]] = {
            "tuple": lambda node: tuple(map(self.decode, node["tuple"])),
            "dict": lambda node: {self.decode(k): self.decode(v) for k, v in node["dict"]},
            "number": self._number,
            "array": lambda node: self._array(node["array"]),
            "texts": self._text_array,
            "objects": self._object_array,
            "sparse": self._sparse,
            "slice": lambda node: slice(*map(self.decode, node["slice"])),
            "dtype": lambda node: np.dtype(_one_of(node["dtype"], (*DTYPES, "O"))),
            "type": lambda node: _TYPES[node["type"]],
            "random_state": self._random_state,
            "made": self._made,
            "class": self._object,
        }

    def decode(self, node: Any) -> Any:
        """Return what the plain data stands for."""
        if isinstance(node, list):
            return [self.decode(part) for part in node]
        if not isinstance(node, dict):
            return node
        kind = next((key for key in self._by_key if key in node), None)
        if kind is None:
            raise ValueError(f"it has an entry of unknown kind, with the keys {[*node]}")
        return self._by_key[kind](node)

    def _array(self, place: Any) -> NDArray[Any]:
        if type(place) is not int or not 0 <= place < len(self._arrays):
            raise ValueError(f"there is no array number {place!r}")
        return self._arrays[place]

    def _number(self, node: Any) -> Any:
        dtype, value = node["number"]
        return np.dtype(_one_of(dtype, DTYPES)).type(value)

    def _text_array(self, node: Any) -> NDArray[Any]:
        lengths, joined = (self._array(place) for place in node["texts"])
        self._texts += lengths.size
        if self._texts > MOST_TEXTS or lengths.dtype != np.int64 or joined.dtype != np.uint8:
            raise ValueError("an array of texts is damaged or too large")
        present = np.maximum(lengths, 0)
        if lengths.size and (lengths.min() < -1 or present.max() > joined.size):
            raise ValueError("a text has an impossible length")
        ends = np.cumsum(present)
        if (ends[-1] if ends.size else 0) != joined.size:
            raise ValueError("the lengths of texts do not add up")
        content, texts = joined.tobytes(), np.empty(lengths.size, dtype=object)
        for place, (length, end) in enumerate(zip(lengths.tolist(), ends.tolist(), strict=True)):
            texts[place] = None if length < 0 else content[end - length : end].decode("utf-8")
        texts = texts.reshape(node["shape"])
        return _fixed_width(texts, joined.size) if node["fixed"] else texts

    def _object_array(self, node: Any) -> NDArray[Any]:
        values = self.decode(node["objects"])
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array.reshape(node["shape"])

    def _sparse(self, node: Any) -> Any:
        data, indices, indptr = self.decode(node["sparse"])
        rows, columns = node["shape"]
        if not 0 <= rows == indptr.size - 1 or not 0 <= columns < 1 << 62:
            raise ValueError("a sparse matrix has an impossible shape")
        kind = sparse.csr_matrix if node["matrix"] else sparse.csr_array
        matrix = kind((rows, columns), dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return sound_array("a sparse matrix", matrix)

    def _random_state(self, node: Any) -> np.random.RandomState:
        state = np.random.RandomState(0)
        state.set_state(self.decode(node["random_state"]))
        return state

    def _made(self, node: Any) -> Any:
        name, method = node["made"]
        make = remembered_method(class_called(name), method)
        options = {name: self.decode(option) for name, option in node["options"].items()}
        made = make(*self.decode(node["arguments"]), **options)
        # Files of early versions have no checksum of what is drawn.
        if "sha256" in node and fingerprint(made) != node["sha256"]:
            raise ValueError(
                f"the {name} that is drawn from its seed is not the one that was saved"
            )
        return made

    def _object(self, node: Any) -> Any:
        cls = class_called(node["class"])
        if is_estimator(cls):
            return self._estimator(cls, node)
        names = {field.name for field in dataclasses.fields(cls) if field.init}
        _check_names(cls, node["fields"], names)
        fields = {name: self.decode(value) for name, value in node["fields"].items()}
        for name, value in fields.items():
            check_part(cls, name, value)
        return cls(**fields)

    def _estimator(self, cls: type, node: Any) -> Any:
        parameters = inspect.signature(cls).parameters
        _check_names(cls, node["parameters"], set(parameters))
        given = {name: self.decode(value) for name, value in node["parameters"].items()}
        estimator = cls(**given)
        later = postponable_names(cls)
        for name, value in node["fitted"].items():
            is_method = isinstance(inspect.getattr_static(cls, name, None), _METHODS)
            special = not name.isidentifier() or name.startswith("__")
            if special or is_method or name in parameters:
                raise ValueError(f"{cls.__name__} cannot have an attribute {name!r}")
            if name in later:
                vars(estimator)[name] = self._now_or_later(cls, name, value)
            else:
                vars(estimator)[name] = self._attribute(cls, name, value)
        return estimator

    def _attribute(self, cls: type, name: str, node: Any) -> Any:
        value = self.decode(node)
        check_part(cls, name, value)
        return value

    def _now_or_later(self, cls: type, name: str, node: Any) -> Any:
        """Return an attribute, or what makes it when it is needed, if its tables are large."""
        try:
            with memory_allowance(self._allowance_of_later):
                return self._attribute(cls, name, node)
        except AllowanceError:
            return _Later(self._file, self._arrays, cls, name, node)


@dataclasses.dataclass(frozen=True, eq=False)
class _Later:
    """An attribute that is made when it is first needed; it can be pickled meanwhile."""

    file: str
    arrays: list[NDArray[Any]] = dataclasses.field(repr=False)
    cls: type
    name: str
    node: Any = dataclasses.field(repr=False)
    is_postponed: ClassVar[bool] = True

    def made(self) -> Any:
        """Return the attribute; for its tables there is all memory that is available."""
        try:
            with memory_allowance(None):
                decoder = Decoder(self.file, self.arrays)
                return decoder._attribute(self.cls, self.name, self.node)
        # What a damaged description brings about in constructors cannot be foreseen.
        except Exception as error:
            raise refusal(self.file, error) from error


def refusal(file: str, error: Exception) -> InputError:
    """Return what is said of a file that is no model, for whatever reason."""
    reason = str(error).rstrip(".") or type(error).__name__
    return InputError(
        f"{file} cannot be loaded as a model: {reason}. Save the model anew, with this version if "
        "it is an old one."
    )


def _check_names(cls: type, given: Any, known: set[str]) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ValueError(
            f"{cls.__name__} has no {unknown[0]!r} in this version: read it with the version that "
            "wrote it, or a later one"
        )


def _fixed_width(texts: NDArray[Any], size: int) -> NDArray[Any]:
    """Return texts as NumPy's type of a fixed width, if that is no waste of memory."""
    longest = max((len(text) for text in texts.ravel().tolist()), default=0)
    if longest * texts.size > 64 * size + 1024:
        raise ValueError("texts of a fixed width would take far more memory than the file has")
    return texts.astype(f"<U{max(longest, 1)}")


def _one_of(value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"it has numbers of the type {value!r}; allowed are {allowed}")
    return str(value)

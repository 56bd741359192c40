"""Groups of options that several commands share, each of which is one parameter of a command."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from powersketch.cli import options as given_as

if TYPE_CHECKING:
    from powersketch.cli.data import Data


def with_single_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose groups of options are single options, as typer needs them.

    A parameter whose default is an object of a dataclass becomes the fields of that class; what
    the object has are their defaults.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if dataclasses.is_dataclass(parameter.default)
    }

    @wraps(command)
    def expanded(**given: Any) -> Any:
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]
            given[name] = type(group)(**{field: given.pop(field) for field in fields})
        return command(**given)

    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += _single(groups[name]) if name in groups else [parameter]
    single = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    expanded.__signature__ = signature.replace(parameters=single)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in single}
    return expanded


def _single(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(type(group), include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(group, field.name),
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]


@dataclasses.dataclass(frozen=True)
class KernelOptions:
    """A kernel by its name and parameters."""

    kernel: given_as.KernelName = "polynomial"
    degree: given_as.Degree = None
    gamma: given_as.Gamma = None
    coef0: given_as.Coef0 = None
    order: given_as.Order = None
    depth: given_as.Depth = None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that were given."""
        return given_as.given(
            degree=self.degree,
            gamma=given_as.number_or_name("gamma", self.gamma, ("scale", "median")),
            coef0=self.coef0,
            order=self.order,
            depth=self.depth,
        )

    def exact(self, X: Any = None) -> Any:
        """Return the kernel; a gamma such as "scale" is found in the rows."""
        from powersketch.kernels import as_kernel

        return as_kernel(self.kernel, X, **self.parameters())


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """Which part of a file is used, and how it is read."""

    columns: given_as.Columns = None
    drop: given_as.Drop = None
    header: given_as.Header = None
    encoding: given_as.Encoding = None
    dtype: given_as.DType = None
    prepare: given_as.Prepare = None

    def load(
        self,
        file: Path,
        targets: Sequence[str] = (),
        weight: str | None = None,
        table: Any = None,
    ) -> Data:
        """Return what the file holds; rows of its table may have been read before."""
        from powersketch.cli.data import load_data
        from powersketch.tables import TablePreparation

        return load_data(
            file,
            targets=targets,
            columns=self.columns,
            drop=self.drop,
            weight=weight,
            header=self.header,
            encoding=self.encoding,
            dtype=self.dtype,
            preparation=given_as.settings_for(TablePreparation, self.prepare, "--prepare"),
            table=table,
        )

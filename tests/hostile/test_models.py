"""A few hundred damaged models, the first of those that ``tests.hostile.fuzz_models`` tries."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from powersketch import load
from powersketch.exceptions import InputError
from powersketch.storage import container, models
from tests.hostile import fuzz_models


def test_damaged_models_are_refused_by_name_or_loaded(tmp_path: Path) -> None:
    tally = fuzz_models.run(250, 0, tmp_path)
    assert tally.failures == []
    # A forger can change a number so that the file is a model still.
    assert tally.counts["loaded"] >= 15
    assert tally.counts["refused"] >= 120


def test_whole_models_are_loaded(tmp_path: Path) -> None:
    for number, content in enumerate(fuzz_models.whole_models()):
        path = tmp_path / f"{number}.model"
        path.write_bytes(content)
        assert fuzz_models.signed(*fuzz_models.parts(content)) == content
        assert load(path) is not None


def _forged(tmp_path: Path, change: Any) -> Path:
    description, arrays = fuzz_models.parts(fuzz_models.whole_models()[3])
    path = tmp_path / "forged.model"
    path.write_bytes(fuzz_models.signed(change(description) or description, arrays))
    return path


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"class": "os.system", "parameters": {}, "fitted": {}}, "class .os.system.*does not know"),
        ({"class": "RandomStreams", "fields": {"seed": 1}}, "it holds no estimator"),
        ({"made": ["SRHT", "__new__"], "arguments": [], "options": {}}, "no way '__new__'"),
        ({"made": ["SRHT", "apply"], "arguments": [], "options": {}}, "no way 'apply'"),
        ({"unheard": 1}, "unknown kind"),
        ({"array": 10**9}, "no array number 1000000000"),
        ([1] * 10, "holds no estimator"),
    ],
)
def test_what_a_file_may_not_ask_for(tmp_path: Path, entry: Any, message: str) -> None:
    def change(description: Any) -> None:
        description["model"]["object"] = entry

    with pytest.raises(InputError, match=message):
        load(_forged(tmp_path, change))


def test_attributes_cannot_be_special(tmp_path: Path) -> None:
    def change(description: Any) -> None:
        description["model"]["object"]["fitted"]["__class__"] = 1

    with pytest.raises(InputError, match="cannot have an attribute '__class__'"):
        load(_forged(tmp_path, change))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seed_", "12", "seed_ is a str, and no int"),
        ("n_components_", True, "n_components_ is a bool, and no int"),
        ("n_features_in_", None, "n_features_in_ is a NoneType, and no int"),
        ("kernel_", {"tuple": []}, "kernel_ is a tuple, and no Kernel"),
        ("transform", 1, "cannot have an attribute 'transform'"),
        (
            "kernel_",
            {"class": "Certificate", "fields": {"rows": 1, "frobenius": 0.5}},
            "Certificate.frobenius is a float, and no Interval",
        ),
    ],
)
def test_parts_have_the_types_that_their_classes_say(
    name: str, value: Any, message: str, tmp_path: Path
) -> None:
    def change(description: Any) -> None:
        description["model"]["object"]["fitted"][name] = value

    with pytest.raises(InputError, match=message):
        load(_forged(tmp_path, change))


def test_tables_beyond_the_allowance_are_not_drawn(tmp_path: Path) -> None:
    streams = {"class": "RandomStreams", "fields": {"seed": 1, "path": ""}}

    def change(description: Any) -> None:
        arguments = [streams, 1 << 28, 1 << 20]
        made = {"made": ["SRHT", "draw"], "arguments": arguments, "options": {}}
        description["model"]["object"] = {"tuple": [made]}

    with pytest.raises(InputError, match="more than is allowed here"):
        load(_forged(tmp_path, change))


def test_arrays_are_as_large_as_they_say(tmp_path: Path) -> None:
    def change(description: Any) -> None:
        description["arrays"][0]["shape"] = [1 << 40]

    with pytest.raises(InputError, match=r"an array of shape|deflated arrays take more"):
        load(_forged(tmp_path, change))


def test_a_reader_without_a_checksum_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The damaged files that are not signed anew are loaded if nobody looks at the checksum."""
    genuine = container.read_content

    def careless(path: Path) -> Any:
        content = path.read_bytes()
        path.write_bytes(fuzz_models.signed(*fuzz_models.parts(content)))
        return genuine(path)

    monkeypatch.setattr(models, "read_content", careless)
    assert fuzz_models.run(150, 1, tmp_path).failures


def test_the_same_seed_damages_the_same_files() -> None:
    whole = fuzz_models.whole_models()[0]
    first, again = (fuzz_models._forged(whole, random.Random("x")) for _ in range(2))
    assert first == again

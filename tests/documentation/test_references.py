"""Every work that is cited by a key stands in REFERENCES.md, once."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CITED = re.compile(r"\[([A-Z][A-Za-z]*\+?\d\d)\b[^\]]*\]")
_NOT_WORKS = {"Float64"}


def listed() -> list[str]:
    text = (ROOT / "REFERENCES.md").read_text("utf-8")
    return re.findall(r"^\| ([A-Z][A-Za-z]*\+?\d\d) \|", text, re.MULTILINE)


def cited() -> dict[str, Path]:
    """Return every key with a file that cites it."""
    places = [*ROOT.glob("*.md")]
    for folder, pattern in (("src", "*.py"), ("native", "*.hpp"), ("docs", "*.md")):
        places += (ROOT / folder).rglob(pattern)
    return {
        key: path
        for path in places
        if path.name != "REFERENCES.md"
        for key in _CITED.findall(path.read_text("utf-8"))
        if key not in _NOT_WORKS
    }


def test_every_key_that_is_cited_is_listed() -> None:
    assert {key: path for key, path in cited().items() if key not in listed()} == {}


def test_no_work_is_listed_twice() -> None:
    keys = listed()
    assert len(keys) > 40
    assert sorted(set(keys)) == sorted(keys)

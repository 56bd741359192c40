"""Pages made from files of the project: history, rules, tour, references, benchmarks."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from benchmarks.report import write_atomically
from docs.extensions import benchmark_page

ROOT = Path(__file__).parents[2]
_PAGES = {
    "ARCHITECTURE.md": "/project/architecture.md",
    "CHANGELOG.md": "/project/changelog.md",
    "CONTRIBUTING.md": "/project/contributing.md",
    "README.md": "/index.md",
    "REFERENCES.md": "/theory/references.md",
    "SECURITY.md": "/project/security.md",
}
_ROW = re.compile(r"^\| (\S+) \| (.+?) \| (.+) \|$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", define_references)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir)
    for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        text = with_links_of_the_site((ROOT / name).read_text("utf-8"))
        write_if_changed(folder / _PAGES[name].lstrip("/"), text)
    write_if_changed(folder / "theory" / "references.md", references_page())
    write_if_changed(folder / "measurements.md", benchmark_page.text(folder / "_static"))


def write_if_changed(path: Path, text: str) -> None:
    """Leave files as they are where nothing changed, so that Sphinx does not read them again."""
    if not path.exists() or path.read_text("utf-8") != text:
        write_atomically(path, text)


def with_links_of_the_site(text: str) -> str:
    """Let links between files of the project lead to their pages."""
    names = "|".join(map(re.escape, _PAGES))
    text = re.sub(rf"\]\(({names})(#[^)]*)?\)", lambda m: f"]({_PAGES[m[1]]}{m[2] or ''})", text)
    return re.sub(r"\]\(docs/", "](/", text)


@cache
def references() -> dict[str, tuple[str, str]]:
    """Return works and what they are used for, by key."""
    rows = _ROW.findall((ROOT / "REFERENCES.md").read_text("utf-8"))
    return {key: (work, use) for key, work, use in rows if key not in ("key", "---")}


def reference_keys() -> list[str]:
    return list(references())


def references_page() -> str:
    entries = [
        f"(reference-{key.lower()})=\n\n**[{key}]**\n: {work}\n\n  *Used for:* {use}\n"
        for key, (work, use) in sorted(references().items())
    ]
    opening = "# References\n\nCode and documentation cite these works by key.\n"
    return "\n".join([opening, *entries])


def define_references(app: Sphinx, page: str, source: list[str]) -> None:
    """Let keys such as [SWYZ21] in Markdown be links, by definitions at the end of the page."""
    if app.env.doc2path(page).suffix == ".md" and page != "theory/references":
        links = [f"[{key}]: #reference-{key.lower()}" for key in references()]
        source[0] += "\n\n" + "\n".join(links) + "\n"

"""Checks a built site offline: all links and anchors lead somewhere, nothing comes from outside."""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src")}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload"}


class Page(HTMLParser):
    """The targets that a page links to or loads, and the anchors that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.linked: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.linked.add(given["href"])
        if tag == "link" and not _LOADED_LINKS.isdisjoint(given.get("rel", "").split()):
            self.loaded.add(given["href"])
        self.loaded |= {given[name] for kind, name in _LOADED if kind == tag and name in given}


@cache
def parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def faults(path: Path) -> list[str]:
    """Return what is wrong with the links of a page."""
    page = parsed(path)
    elsewhere = [f"loads {target}" for target in sorted(page.loaded) if is_remote(target)]
    local = sorted(target for target in page.linked | page.loaded if not is_remote(target))
    return elsewhere + [f"leads nowhere: {target}" for target in local if is_broken(path, target)]


def is_remote(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "mailto")


def is_broken(path: Path, target: str) -> bool:
    parts = urlsplit(target)
    if parts.scheme in ("data", "javascript"):
        return False
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.is_file():
        return True
    is_page = file.suffix == ".html" and parts.fragment
    return bool(is_page) and unquote(parts.fragment) not in parsed(file).anchors


def main(folder: Path) -> int:
    root = folder.resolve()
    # What is below _static are templates of the theme.
    pages = sorted(page for page in root.rglob("*.html") if "_static" not in page.parts)
    found = [f"{page.relative_to(root)} {fault}" for page in pages for fault in faults(page)]
    for fault in found:
        print(fault, file=sys.stderr)
    links = sum(len(parsed(page).linked) for page in pages)
    print(f"{len(pages)} pages, {links} links, {len(found)} faults: {folder}/index.html")
    return int(bool(found) or not pages)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

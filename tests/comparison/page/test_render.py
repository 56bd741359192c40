"""The page of a comparison: complete, safe to open, and the same every time."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from powersketch import pages
from powersketch.comparison.page import page_text, write_page
from tests.comparison.synthetic import NAMES, SIZES, failure, made_up, measurement
from tests.pages.test_images import pixels_of

VOID = {"meta", "link", "input", "img", "br"}


class Outline(HTMLParser):
    """Collects elements, their nesting and their text, and refuses what is not closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def charts_of(content: str) -> list[ET.Element]:
    return [
        ET.fromstring(found) for found in re.findall(r'<svg class="chart".*?</svg>', content, re.S)
    ]


def series_of(chart: ET.Element) -> dict[str, ET.Element]:
    return {
        group.attrib["data-name"]: group for group in chart.iter("g") if "data-name" in group.attrib
    }


@pytest.fixture(scope="module")
def largest() -> str:
    return page_text(made_up(NAMES, SIZES))


def test_every_element_is_closed_and_every_chart_is_xml(largest: str) -> None:
    outline = Outline(largest)
    assert largest.startswith("<!DOCTYPE html>\n")
    assert outline.named("html") == [{"lang": "en"}]
    assert [tag for tag, _ in outline.elements].count("h1") == 1
    assert len(charts_of(largest)) == 7


def test_the_page_refers_to_nothing_outside(largest: str) -> None:
    for forbidden in ("http:", "https:", "//", "@import", "url(", "src=", "href="):
        allowed = {"//": r"^\s*//", "src=": 'src="data:', "href=": 'href="data:'}.get(forbidden)
        for line in re.sub(r"base64,[A-Za-z0-9+/=]+", "base64,", largest).splitlines():
            for start in (found.start() for found in re.finditer(re.escape(forbidden), line)):
                assert allowed is not None, line
                assert re.match(allowed, line[start:]) or re.match(allowed, line), line[:200]


def test_the_policy_allows_this_style_and_this_script_only(largest: str) -> None:
    policies = [
        attributes["content"]
        for attributes in Outline(largest).named("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert "unsafe" not in policies[0]
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", largest, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policies[0]
    assert not [found for _, found in Outline(largest).elements if "style" in found]
    assert not [
        name for _, found in Outline(largest).elements for name in found if name[:2] == "on"
    ]


def test_the_same_comparison_gives_the_same_page(largest: str) -> None:
    assert page_text(made_up(NAMES, SIZES)) == largest


def test_pages_are_small(largest: str) -> None:
    assert len(page_text(made_up(NAMES[:6], SIZES[:4])).encode()) < 300_000
    assert len(largest.encode()) < 600_000


def test_every_method_is_in_every_figure(largest: str) -> None:
    *errors, spectrum = (series_of(chart) for chart in charts_of(largest))
    assert len(errors) == 6
    for series in errors:
        assert set(series) == set(NAMES)
        for group in series.values():
            assert len(group.findall("g")) == len(SIZES)
    assert set(spectrum) == {*NAMES, "exact"}
    alternatives = " ".join(image["alt"] or "" for image in Outline(largest).named("img"))
    for name in NAMES:
        assert f"approximated by {name} with" in alternatives
        assert f"{name} minus the exact kernel" in alternatives


def test_looks_differ_among_many_methods(largest: str) -> None:
    series = series_of(charts_of(largest)[0])
    looks = set()
    for group in series.values():
        colour = group.attrib["class"].split()[1]
        marker = next(path for path in group.iter("path") if "marker" in path.attrib["class"])
        line = group.find("path")
        assert line is not None
        looks.add((colour, line.get("stroke-dasharray"), marker.get("class"), marker.get("d")))
    assert len(looks) == len(NAMES)


def test_points_are_described_and_within_reach_of_the_keyboard(largest: str) -> None:
    for chart in charts_of(largest):
        assert chart.attrib["aria-label"]
        points = [group for group in chart.iter("g") if group.get("class") == "point"]
        assert points
        for point in points:
            title = point.find("title")
            assert title is not None
            assert title.text == point.attrib["aria-label"]
            assert point.attrib["tabindex"] == "0"


def test_points_lie_where_their_values_say() -> None:
    comparison = made_up(("power", "tree"), (128, 512))
    series = series_of(charts_of(page_text(comparison))[0])
    places = {}
    for name, group in series.items():
        for point in group.findall("g"):
            x, y = point.attrib["transform"].removeprefix("translate(").rstrip(")").split()
            size = int(re.findall(r", (\d+) components", point.attrib["aria-label"])[0])
            places[name, size] = (float(x), float(y))
    errors = {(found.method, found.n_components): found for found in comparison.measurements}
    top, bottom = places["tree", 128], places["power", 512]
    for key, (x, y) in places.items():
        assert x == places["power", key[1]][0]
        part = math.log(errors["tree", 128].frobenius / errors[key].frobenius) / math.log(
            errors["tree", 128].frobenius / errors["power", 512].frobenius
        )
        assert y == pytest.approx(top[1] + part * (bottom[1] - top[1]), abs=0.11)


def test_every_figure_is_in_the_table(largest: str) -> None:
    outline = Outline(largest)
    assert len(outline.named("tr")) == len(NAMES) * len(SIZES) + 1
    cells = [found for tag, found in outline.elements if tag in ("td", "th")]
    heads = [found for found in cells if found.get("scope") == "col"]
    assert len(cells) == len(heads) * len(outline.named("tr"))
    assert all("data-value" in found for found in cells if found.get("scope") != "col")
    assert sum("best" in (found.get("class") or "").split() for found in cells) == len(SIZES)


def test_everything_written_is_escaped() -> None:
    nasty = "<script>alert('&\"')</script>"
    comparison = made_up(("power",), kernel=nasty)
    found = (
        *comparison.measurements,
        replace(measurement("x", 128, 0.1), method=nasty, kind=nasty),
        failure("tree", 128, nasty),
    )
    spectra = {nasty: comparison.spectrum}
    images = {nasty: comparison.kernel_image}
    content = page_text(
        replace(
            comparison,
            measurements=found,
            approximate_spectra=spectra,
            approximate_images=images,
        )
    )
    assert nasty not in content
    assert content.count("<script") == content.count("</script") == 1
    outline = Outline(content)
    assert outline.text.count(nasty) >= 8
    assert nasty in series_of(charts_of(content)[0])
    assert nasty in series_of(charts_of(content)[-1])


def test_the_answer_names_where_the_main_method_loses() -> None:
    found = (
        measurement("power", 128, 0.2),
        measurement("nystroem", 128, 0.1, transform_seconds=1.0),
        measurement("power", 256, 0.105, transform_seconds=0.01),
        measurement("nystroem", 256, 0.1, transform_seconds=1.0),
        measurement("tree", 256, 0.5, transform_seconds=0.001),
    )
    words = Outline(page_text(made_up(("power",), measurements=found))).text.replace("\xa0", " ")
    assert "the most accurate oblivious method or within 10 % of it for 2 of 2 sizes" in words
    assert "of all methods for 1 of 2; at equal transform time it is so for 2 of 2" in words
    assert "128 components: nystroem has error 0.1, power has 0.2" in words
    assert "256 components: nystroem has error" not in words
    assert "128 to 256 components: nystroem, error 0.1" in words
    assert "from 1 µs per row: tree with 256 components, error 0.5" in words


def test_the_answer_names_who_is_better_in_the_same_time() -> None:
    found = (
        measurement("power", 128, 0.2, transform_seconds=0.002),
        measurement("tree", 256, 0.1, transform_seconds=0.001),
    )
    words = Outline(page_text(made_up(("power",), measurements=found))).text
    assert "2 µs per row: tree with 256 components has error 0.1, power with 128 has 0.2" in words
    assert "128 components: tree" not in words


def test_the_answer_says_that_the_main_method_is_missing() -> None:
    assert "power, is not among the measured methods" in Outline(page_text(made_up(("tree",)))).text


def test_a_budget_that_nothing_meets_is_stated() -> None:
    words = Outline(page_text(made_up(time_budget=1e-9))).text
    assert "transform_seconds=1e-09 is too little" in words


def test_interrupted_and_failed_methods_are_named() -> None:
    message = "it has 800 features only: raise pilot_rows"
    comparison = made_up(("power", "tree"), (128,))
    found = (*comparison.measurements, failure("nystroem", 128, message))
    content = page_text(replace(comparison, measurements=found, complete=False))
    words = Outline(content).text
    assert "The comparison was interrupted" in words
    assert words.count(message) == 2
    assert "nystroem failed" in words
    assert "interrupted" not in Outline(page_text(comparison)).text
    assert series_of(charts_of(content)[0])["nystroem"].findall("g") == []


@pytest.mark.parametrize(
    "changes",
    [
        {"measurements": (), "approximate_spectra": {}, "approximate_images": {}},
        {
            "measurements": (),
            "approximate_spectra": {},
            "approximate_images": {},
            "spectrum": np.zeros(0),
            "kernel_image": np.zeros((0, 0)),
        },
        {"measurements": (failure("power", 128, "no"),)},
    ],
    ids=["nothing measured", "nothing at all", "everything failed"],
)
def test_pages_of_nothing(changes: dict) -> None:
    words = Outline(page_text(made_up(("power",), complete=False, **changes))).text
    assert "there is nothing to choose from" in words
    assert "nan" not in words


@pytest.mark.parametrize(
    "found",
    [
        measurement("power", 128, 0.1, spectral=None, frobenius_spread=0.0),
        measurement("power", 128, 0.0, frobenius_spread=0.0),
        measurement("power", 128, 1e250, frobenius_spread=1e250, operator_norm=1e250),
        measurement("power", 128, 0.1, frobenius_spread=math.nan, operator_norm=math.nan),
        measurement("power", 128, 0.1, frobenius_spread=0.3),
        measurement("power", 1, 0.1, transform_rows=0, transform_seconds=math.nan),
        measurement("power", 1, 0.1, transform_seconds=0.0, state_bytes=0, transform_bytes=0),
    ],
    ids=["no interval", "exact", "exploded", "nan", "wide spread", "no rows", "no time"],
)
def test_pages_of_a_single_measurement(found) -> None:
    content = page_text(made_up(("power",), (found.n_components,), measurements=(found,)))
    outline = Outline(content)
    assert "nan" not in outline.text
    for chart in charts_of(content):
        for numbers in re.findall(r'(?:transform|d)="[^"]*"', ET.tostring(chart, "unicode")):
            assert not re.search("nan|inf", numbers)


def test_errors_out_of_the_picture_are_said_to_be() -> None:
    assert "are drawn there" not in Outline(page_text(made_up())).text
    found = (measurement("power", 128, 0.1), measurement("tree", 128, 1e9))
    content = page_text(made_up(("power", "tree"), (128,), measurements=found))
    assert "Errors above 10000 are drawn there" in Outline(content).text
    assert "error 10⁹" in content or "error 1 × 10⁹" in content


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_kernels_of_extreme_scale(scale: float) -> None:
    usual = made_up()
    scaled = replace(
        usual,
        spectrum=scale * usual.spectrum,
        approximate_spectra={name: scale * x for name, x in usual.approximate_spectra.items()},
        kernel_image=scale * usual.kernel_image,
        approximate_images={name: scale * x for name, x in usual.approximate_images.items()},
    )
    content = page_text(scaled)
    assert set(series_of(charts_of(content)[-1])) == {*usual.methods, "exact"}
    found = [
        re.findall(r"</strong>, (error [^<;]*)[<;]", text) for text in (content, page_text(usual))
    ]
    assert found[0] == found[1] != []


def test_a_kernel_of_one_row_and_a_constant_kernel() -> None:
    one = np.ones((1, 1))
    comparison = made_up(
        ("power",),
        spectrum=np.ones(1),
        approximate_spectra={"power": np.zeros(1)},
        kernel_image=one,
        approximate_images={"power": one},
    )
    content = page_text(comparison)
    assert ", error 0;" in content
    assert "power" in series_of(charts_of(content)[-1])


def test_one_scale_serves_all_images(largest: str) -> None:
    comparison = made_up()
    content = page_text(comparison)
    sources = [image["src"] or "" for image in Outline(content).named("img")]
    exact = next(
        image["src"] or ""
        for image in Outline(content).named("img")
        if (image["alt"] or "").startswith("The exact kernel")
    )
    # The most accurate approximation differs from the kernel by less than a shade.
    own = sources[sources.index(exact) + 1]
    assert (pixels_of(exact) == pixels_of(own)).mean() > 0.95


def test_a_page_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    comparison = made_up()
    write_page(comparison, path)
    assert path.read_text(encoding="utf-8") == page_text(comparison)
    write_page(made_up(("tree",)), str(path))
    before = path.read_bytes()

    def broken(self: Path, *_: object, **__: object) -> None:
        self.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", broken)
    with pytest.raises(OSError, match="disk full"):
        write_page(comparison, path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_a_page_that_cannot_be_made_leaves_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")

    def broken(room: str, name: str) -> str:
        raise FileNotFoundError(name)

    monkeypatch.setattr(pages, "_asset", broken)
    with pytest.raises(FileNotFoundError):
        write_page(made_up(), path)
    assert path.read_text(encoding="utf-8") == "old"


def test_the_comparison_writes_its_page(tmp_path: Path) -> None:
    comparison = made_up()
    comparison.save_html(tmp_path / "page.html")
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert written == page_text(comparison)
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_the_file_and_the_day_are_named() -> None:
    named = made_up(data_name="<rows>.csv", date="2026-02-03")
    words = "Data: <rows>.csv, 60000 rows and 784 columns, compared on 2026-02-03. Maps were"
    assert words in Outline(page_text(named)).text
    assert "Data: 60000 rows and 784 columns. Maps were" in Outline(page_text(made_up())).text


def test_warnings_are_listed_and_noted() -> None:
    plain = made_up(("power",), (128,))
    warned = replace(plain, measurements=(replace(plain.measurements[0], warnings=("few rows",)),))
    words = Outline(page_text(warned)).text
    assert "power with 128 components warned: few rows" in words
    assert "oblivious warned: few rows" in words
    assert "note" not in Outline(page_text(plain)).text


def test_six_methods_are_shown_at_first(largest: str) -> None:
    boxes = [box for box in Outline(largest).named("input") if box.get("type") == "checkbox"]
    assert len(boxes) == len(NAMES)
    shown = [name for name, box in zip(NAMES, boxes, strict=True) if "checked" in box]
    # The main method, the best one of scikit-learn's, and the four most accurate others.
    assert shown == [*NAMES[:5], "sklearn-countsketch"]
    few = Outline(page_text(made_up(NAMES[:6]))).named("input")
    assert all("checked" in box for box in few if box.get("type") == "checkbox")


def test_every_difference_has_a_scale_of_its_own() -> None:
    """Errors from 1e-4 to 10 all fill their colours, where a common scale would leave blanks."""
    images = [
        image["src"] or ""
        for image in Outline(page_text(made_up())).named("img")
        if "minus the exact kernel:" in (image["alt"] or "")
    ]
    assert len(images) == 6
    assert all(len(np.unique(pixels_of(image).reshape(-1, 3), axis=0)) > 40 for image in images)


def test_the_answer_comes_first(largest: str) -> None:
    assert largest.index("<h2>The answer</h2>") < largest.index("<fieldset>")
    message = "it has 800 features only: raise pilot_rows"
    comparison = made_up(("power",), (128,))
    found = (*comparison.measurements, failure("nystroem", 128, message))
    content = page_text(
        replace(comparison, measurements=found, data_name="a.csv", date="2031-02-03")
    )
    assert content.index("The answer") < content.index(message)
    assert "Data: a.csv, 60000 rows and 784 columns, compared on 2031-02-03." in content

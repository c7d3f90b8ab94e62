import re
import sys
from typing import TYPE_CHECKING

import pytest

from stream_peer.errors import MissingExtraError
from stream_peer.serve.pages.parts import (
    BAND,
    HALF,
    NARROW,
    SERIES_COLOURS,
    both_widths,
    document,
    drawn,
    quiet,
    standalone,
    variable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def paint(axes: "Axes") -> None:
    quiet(axes)
    axes.plot([0.0, 1.0, 2.0], [0.25, 0.5, 0.125], color=SERIES_COLOURS[1])
    axes.fill_between([0.0, 2.0], [0.1, 0.1], [0.2, 0.2], color=BAND)
    axes.set_xlabel("questions")


def test_colours_are_variables_of_the_page_and_nothing_else() -> None:
    picture = drawn(paint, HALF, salt="s")

    assert "stroke: var(--series-2)" in picture
    assert "fill: var(--band)" in picture
    assert set(re.findall(r"(?:stroke|fill): (#[0-9a-f]+)", picture)) == set()


def test_text_stays_text_and_equal_pictures_are_equal_bytes() -> None:
    assert ">questions</text>" in drawn(paint, NARROW, salt="s")
    assert drawn(paint, NARROW, salt="s") == drawn(paint, NARROW, salt="s")


def test_names_inside_the_two_widths_of_a_picture_differ() -> None:
    ids = re.findall(r'\bid="([^"]+)"', both_widths(paint, HALF, salt="s"))

    assert len(ids) == len(set(ids)) > 0


def test_every_colour_of_a_curve_has_a_variable_of_its_own() -> None:
    assert len({variable(colour) for colour in SERIES_COLOURS}) == len(SERIES_COLOURS)


def test_without_matplotlib_the_command_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'stream-peer\[report\]'"):
        drawn(paint, HALF, salt="s")


def test_a_picture_of_its_own_has_the_light_colours_of_the_page_and_a_card_behind_it() -> None:
    picture = standalone(paint, HALF, salt="s")

    assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg" width="520" height="290"')
    assert '<rect width="100%" height="100%" fill="#ffffff"/>' in picture
    assert "stroke: #d9682b" in picture
    assert "var(" not in picture


def test_a_title_is_shown_as_text_and_the_style_sheet_stands_in_the_page() -> None:
    page = document("<b>1 & 2</b>", "<p>body</p>", "let x = 1;\n")

    assert "<h1>&lt;b&gt;1 &amp; 2&lt;/b&gt;</h1>" in page
    assert "prefers-color-scheme: dark" in page
    assert "<script>\nlet x = 1;\n</script>" in page

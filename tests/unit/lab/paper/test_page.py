import re

import pytest

from stream_peer.lab.paper.page import TITLE, render
from stream_peer.lab.paper.results import Size
from tests.unit.lab.paper.samples import sample_result


@pytest.fixture(scope="module")
def html() -> str:
    return render([sample_result(1), sample_result(2, missed=True)], size=Size.QUICK, seed=7)


def test_the_page_refers_to_nothing_outside_of_itself(html: str) -> None:
    links = re.findall(r'(?:href|src)="([^"]*)"', html)
    assert [link for link in links if not link.startswith("#")] == []
    assert re.findall(r"@import|url\((?!#)|<(?:script|link|img|iframe)\b", html) == []


def test_a_claim_that_missed_a_band_is_red_in_the_summary_and_where_it_stands(html: str) -> None:
    missed = re.findall(r'<tr class="missed">(.*?)</tr>', html)

    assert len(missed) == 2
    assert all("violations" in row for row in missed)
    assert html.count('<span class="pill bad">1 of 2 missed</span>') == 2
    assert html.count('<span class="pill good">2 met</span>') == 2
    assert "tr.missed td { color: var(--bad)" in html


def test_every_number_stands_beside_its_expectation_and_band(html: str) -> None:
    row = re.findall(r"<tr><td>slope&lt;of&gt;regret</td>(.*?)</tr>", html)[0]
    assert re.findall(r"<td>(.*?)</td>", row) == ["met", "0.480", "0.5", "0.300\u00a0to\u00a00.700", "theory"]


def test_every_figure_has_labelled_axes_a_legend_with_its_band_and_a_caption(html: str) -> None:
    assert len(re.findall(r"<svg", html)) == 2 * 2 * 2
    for label in ("questions T", "summed loss", "error rate", "confidence"):
        assert html.count(f">{label}</text>") == 2 * 2
    assert html.count('class="area"') == 2 * 2
    assert html.count("It bends.") == 2


def test_colours_are_those_of_the_page_and_ids_are_unique(html: str) -> None:
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert set(re.findall(r"(?:stroke|fill): (#[0-9a-f]+)", picture)) == set()
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_texts_are_shown_as_text_and_equal_results_give_equal_pages(html: str) -> None:
    assert "Regret&lt;is&gt;sub-linear." in html
    assert f"<h1>{TITLE.replace(chr(39), '&#x27;')}</h1>" in html
    assert render([sample_result(1), sample_result(2, missed=True)], size=Size.QUICK, seed=7) == html


def test_shares_of_a_map_are_shades_of_one_colour(html: str) -> None:
    picture = next(found for found in re.findall(r"<svg.*?</svg>", html, re.DOTALL) if "confidence" in found)
    assert set(re.findall(r"opacity: ([0-9.]+)", picture)) >= {"0.6", "0.4375", "0.625"}

import re
import sys
from html.parser import HTMLParser

import pytest

from stream_peer.errors import MissingExtraError
from stream_peer.events import topics
from stream_peer.serve.pages.parts import NARROW, drawn
from stream_peer.tools.replay.history import ReplayHistory
from stream_peer.tools.report.cards.parts import FeedExtras
from stream_peer.tools.report.plots import leaders, paint_plot, weights_plot
from stream_peer.tools.report.report import render_report
from tests.unit.tools.report.sample_history import FEED, HOSTILE, add, mixed, sample_history, weights

SECTIONS = (
    "Trust over time",
    "Weights over time",
    "Loss over time",
    "Error rate of reference answers",
    "Certificate",
    "Mixers of the mix",
    "Calibration",
    "Agreement of experts",
    "Experts",
    "Dead letters",
)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href", "onerror"}]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def html() -> str:
    return render_report(sample_history(questions=80, n_experts=12))


@pytest.fixture(scope="module")
def page(html: str) -> _Page:
    parser = _Page()
    parser.feed(html)
    return parser


def test_the_page_refers_to_nothing_outside_of_itself(html: str, page: _Page) -> None:
    assert [link for link in page.links if not link.startswith("#")] == []
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []
    assert [tag for tag in page.tags if tag in {"link", "img", "iframe", "image"}] == []


def test_every_section_has_its_heading_and_every_plot_a_curve_in_both_widths(html: str, page: _Page) -> None:
    assert [heading for heading in SECTIONS if heading not in page.text] == []
    pictures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    curves = [picture for picture in pictures if "stroke: var(--series-1)" in picture]
    assert len(curves) == 2 * 4
    assert len([picture for picture in pictures if "Reliability of the" in picture]) == 2 * 2
    assert len([picture for picture in pictures if "Map of pairs" in picture]) == 2


def test_every_picture_says_what_it_shows_or_is_silent(html: str) -> None:
    heads = re.findall(r"<svg[^>]*>", html)

    assert [head for head in heads if 'aria-label="' not in head and 'aria-hidden="true"' not in head] == []
    assert 'aria-label="Mixing weights over time. At the end: ' in html


def test_tables_name_their_columns_and_rows_and_can_be_scrolled_by_keyboard(html: str) -> None:
    tables = re.findall(r"<table.*?</table>", html, re.DOTALL)

    assert len(tables) >= 3
    for table in tables:
        head, body = table.split("<tbody>")
        assert "<caption" in head
        assert re.findall(r"<th(?! scope=\"col\")[^>]*>", head.replace("<thead>", "")) == []
        assert body.count("<tr>") == body.count('<th scope="row"')
    assert html.count('tabindex="0"') == len(tables)


def test_several_feeds_are_linked_from_the_top_and_one_is_not(html: str) -> None:
    history = ReplayHistory()
    for feed in ("a", "b & c"):
        add(history, topics.WEIGHTS, weights(1, {"x": 1.0}, feed=feed))

    several = render_report(history)

    assert '<a href="#feed-0">a</a>' in several
    assert '<a href="#feed-1">b &amp; c</a>' in several
    assert 'id="feed-1"' in several
    assert "<nav" not in html


def test_hostile_names_and_payloads_are_shown_as_text(html: str, page: _Page) -> None:
    assert HOSTILE not in html
    assert HOSTILE in page.text
    assert page.tags.count("script") == 1
    assert '{"type":"<script>alert(2)</script>"}' in page.text


def test_colours_come_from_the_style_sheet_so_that_dark_pages_have_dark_plots(html: str) -> None:
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        colours = set(re.findall(r"(?:stroke|fill): (#[0-9a-f]+)", picture))
        assert colours == set()


def test_ids_inside_pictures_are_unique_on_the_page(html: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_equal_histories_give_equal_pages(html: str) -> None:
    assert render_report(sample_history(questions=80, n_experts=12)) == html


def test_a_history_without_weights_gives_a_page_that_says_so() -> None:
    assert "No weights were published." in render_report(ReplayHistory())


def test_a_feed_of_one_moment_has_a_table_but_no_curves() -> None:
    history = ReplayHistory()
    add(history, topics.WEIGHTS, weights(1, {"a": 0.6, "b": 0.4}))

    html = render_report(history)

    assert "Nothing to draw yet." in html
    assert "<td" in html


def test_labels_of_plots_keep_their_digits() -> None:
    history = sample_history(questions=60)
    plot = weights_plot(history.feeds[FEED])

    picture = drawn(lambda axes: paint_plot(axes, plot), NARROW, salt="s")

    assert re.search(r">\d+\.\d%<", picture)


def test_leaders_are_the_experts_with_the_largest_weights() -> None:
    shares = {f"e{number}": number / 45 for number in range(10)}
    assert leaders(weights(1, shares)) == ["e9", "e8", "e7", "e6", "e5", "e4", "e3"]


def test_without_matplotlib_the_command_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'stream-peer\[report\]'"):
        render_report(sample_history(questions=20))


def test_without_outcomes_and_certificates_there_are_no_curves_of_them() -> None:
    history = ReplayHistory()
    for revision in (1, 2, 3):
        add(history, topics.WEIGHTS, weights(revision, {"a": 0.1 * revision, "b": 1 - 0.1 * revision}))

    html = render_report(history)

    assert html.count("Nothing to draw yet.") == 2
    assert "Calibration" not in html
    assert "No two experts have voted on 20 common questions." in html


def test_a_feed_without_experts_has_a_page() -> None:
    history = ReplayHistory()
    for revision in (1, 2):
        add(history, topics.WEIGHTS, weights(revision, {}))

    assert "no expert has been scored" in render_report(history)


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        (0.9, "less than the plain mean"),
        (0.6, "more than the plain mean"),
        (0.8001, "a question, as the plain mean did."),
    ],
)
def test_the_mix_is_better_worse_or_the_same_in_words(mix: float, said: str) -> None:
    history = ReplayHistory()
    add(history, topics.WEIGHTS, weights(1, {"a": 1.0}))
    add(history, topics.MIXED_FORECASTS, mixed("q", 1, mix, 0.8, 1))
    assert said in render_report(history)


def test_a_stretch_is_told_as_a_factor(html: str) -> None:
    assert "Stretch +0.12: the stretched forecast lies 1.12 times as far from one half as the mix." in html


def test_settings_that_are_not_as_built_in_stand_under_the_name_of_their_feed() -> None:
    history = sample_history(questions=5, n_experts=4)
    (feed,) = history.feeds

    html = render_report(history, extras={feed: FeedExtras("method.learner=<hedge>")})

    assert "Settings other than the default: <code>method.learner=&lt;hedge&gt;</code>." in html
    assert "Settings other than the default" not in render_report(history, extras={feed: FeedExtras()})


@pytest.mark.parametrize(
    ("variant", "shown"),
    [
        ("preset=paper", "exponential weights on peer losses, as the preset paper says"),
        ("loss=log, method.mixer=select", "the weights by which one expert is followed also make the mix"),
        ("method.mixer=outcomes", "weights that learn from outcomes only"),
    ],
)
def test_a_mix_that_is_made_in_one_way_is_said_to_be(variant: str, shown: str) -> None:
    history = sample_history(questions=5, n_experts=4)
    (feed,) = history.feeds

    alone, four = (
        render_report(history, extras={feed: FeedExtras(variant)}),
        render_report(history, extras={feed: FeedExtras("loss=log")}),
    )

    assert f"One way to weigh the experts: {shown}" in alone
    assert "peer losses</span>" not in alone
    assert "Shares of four ways" in four
    assert "peer losses</span>" in four

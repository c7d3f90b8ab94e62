import re
from html.parser import HTMLParser

import pytest

from stream_peer.events.outputs import Certificate, ErrorRateSummary, MixerShares, TrustState, WeightedExpert, Weights
from stream_peer.serve.metrics.observer import InputLag
from stream_peer.serve.metrics.senders import BusyExpert, LookAlike, NewExperts, UnknownField, UnusedInput
from stream_peer.serve.pages.parts import style_sheet
from stream_peer.serve.pages.status import (
    FEEDS_SHOWN,
    TOP_EXPERTS,
    FeedStatus,
    StatusView,
    status_page,
)

_CLOSED_BY_THEMSELVES = {"meta", "br"}


class Balanced(HTMLParser):
    """Notices elements that are not closed, counts elements, and collects text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in _CLOSED_BY_THEMSELVES:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if "style" not in self.open else ""

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.seen)


def read(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return parser


def expert(name: str, mix: float, select: float) -> WeightedExpert:
    return WeightedExpert(
        id=name,
        mix=mix,
        select=select,
        questions=9.0,
        coverage=0.5,
        peer_loss=0.1,
        outcome_loss=None,
        resolved=3.0,
        team=None,
    )


def weights(
    feed: str,
    *experts: WeightedExpert,
    status: TrustState = "ok",
    reasons: list[str] | None = None,
    rate: ErrorRateSummary | None = None,
    certificate: Certificate | None = None,
) -> Weights:
    return Weights(
        feed=feed,
        revision=9,
        at="2026-11-28T17:50:03.120Z",
        settings="9f3c0d1e",
        status=status,
        status_reasons=reasons or [],
        questions=812.0,
        resolved=203.0,
        error_rate=rate or ErrorRateSummary(zero=0.12, one=0.1, low=0.08, high=0.17, status="ok", measured=0.14),
        mixer=MixerShares(mean=0.25, peer=0.25, truth_slow=0.25, truth_fast=0.25),
        stretch=1.0,
        select_shrink=0.0,
        certificate=certificate,
        experts=list(experts),
    )


def view(*feeds: Weights, lag: list[InputLag] | None = None, ready: bool = True, reason: str = "") -> StatusView:
    shown = [FeedStatus.of(feed, feed.experts) for feed in feeds]
    at = "2026-11-28T17:51:00Z"
    return StatusView("1.2.3", "http://worker-0:6066", at, ready, reason, shown, lag or [], "1a2b3c4d")


def crowd(feed: str, number: int) -> Weights:
    return weights(feed, *(expert(f"e{place}", 1 / number, 1 / number) for place in range(number)))


def test_without_a_feed_it_says_where_to_send_the_first_event() -> None:
    page = read(status_page(view(ready=False, reason="feeds wait for their partitions")))

    assert "No feed yet: send an event to forecast-events." in page.text
    assert "not ready: feeds wait for their partitions" in page.text
    assert page.count("article") == 0


def test_trust_is_said_in_words_with_its_reasons_and_never_by_colour_alone() -> None:
    states: list[TrustState] = ["ok", "warming-up", "low-evidence", "dependent", "contradicted", "uninformative"]

    for state in states:
        page = read(status_page(view(weights("economy", status=state, reasons=["ann and bob say the same"]))))
        assert f"Feed economy{state}" in page.text
        assert "ann and bob say the same" in page.text


def test_both_weights_of_an_expert_are_drawn_on_one_scale_that_no_bar_exceeds() -> None:
    page = status_page(view(weights("economy", expert("ann", 0.3, 0.15), expert("bob", 0.1, 0.0))))

    assert page.count("<span>0%</span><span>50%</span>") == 2
    assert '<i class="mix" style="width:60.0%"></i></span><span class="amount">30.0%</span>' in page
    assert '<i class="select" style="width:30.0%"></i></span><span class="amount">15.0%</span>' in page


def test_the_interval_of_the_error_rate_lies_on_an_axis_from_0_to_50_percent() -> None:
    page = status_page(view(weights("economy")))

    assert 'class="range" style="left:16.0%;right:calc(100% - 34.0%)"' in page
    assert 'class="point" style="left:22.0%"' in page
    assert 'class="measured" style="left:28.0%"' in page
    assert "11.0%, interval 8.0% to 17.0%; outcomes showed 14.0%." in read(page).text


def test_a_rate_beyond_the_axis_stands_at_its_end_and_in_words() -> None:
    beyond = ErrorRateSummary(zero=0.7, one=0.6, low=0.4, high=0.8, status="contradicted", measured=None)
    page = status_page(view(weights("economy", rate=beyond)))

    assert 'class="point" style="left:100.0%"' in page
    assert "65.0%, interval 40.0% to 80.0%; no outcome yet. Evidence: contradicted." in read(page).text
    assert "by outcomes" not in page


def test_a_certificate_is_said_with_its_unit_and_condition() -> None:
    bound = Certificate(regret_at_most=40.6, confidence=0.95)
    page = read(status_page(view(weights("economy", certificate=bound))))

    assert "at most 40.6 in summed loss, 0.050 a question, when following select; 95% confidence" in page.text


def test_ten_thousand_experts_are_a_few_rows_and_the_others_together() -> None:
    large = weights("large", *(expert(f"e{n}", 0.5 if n == 7 else 0.5 / 9_999, 1 / 10_000) for n in range(10_000)))
    page = read(status_page(view(large)))

    assert "e750.0%" in page.text
    assert f"{10_000 - TOP_EXPERTS:,} others50.0% together99.9% together" in page.text
    assert page.count("tr") < 20


def test_an_expert_to_follow_is_listed_however_little_it_has_in_the_mix() -> None:
    others = [expert(f"e{number}", 0.05, 0.0) for number in range(19)]
    page = read(status_page(view(weights("economy", *others, expert("alone", 0.05, 1.0)))))

    assert "alone" in page.text


def test_what_needs_attention_comes_first_and_what_is_not_shown_is_counted() -> None:
    feeds = [crowd(f"feed-{number:03}", 2) for number in range(FEEDS_SHOWN + 2)]
    page = read(status_page(view(*feeds, weights("worst", status="contradicted"))))

    assert page.count("article") == FEEDS_SHOWN
    assert page.text.index("worst") < page.text.index("feed-000")
    assert "3 more: all feeds as JSON" in page.text


HOSTILE = ["<img src=x onerror=alert(1)>", '"><script>', "\u202eevil \u05d0\u05d1", "x" * 300, "a&b", "'"]


def test_hostile_names_are_text_that_ends_and_turns_nothing_around_it() -> None:
    feeds = [weights(name, expert(name, 1.0, 1.0), reasons=[name]) for name in HOSTILE]
    lag = [InputLag("forecast-events", 0, 1, 0.5)]
    page = read(status_page(view(*feeds, lag=lag)._replace(instance=HOSTILE[0], reason=HOSTILE[1], version=HOSTILE[0])))

    assert page.count("img") == page.count("script") == 0
    assert "<bdi>\\u202eevil \u05d0\u05d1</bdi>" in status_page(view(*feeds))
    assert ">" + "x" * 59 + "…<" in status_page(view(*feeds))
    assert "feeds/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E" in [
        attributes.get("href") for _, attributes in page.seen
    ]


def test_nothing_is_fetched_and_every_table_and_part_has_a_name() -> None:
    page = read(status_page(view(crowd("a", 3), crowd("b", 3), lag=[InputLag("feed-log", 0, 0, 0.0)])))

    assert not [attributes for _, attributes in page.seen if "src" in attributes]
    assert page.count("link") == page.count("script") == 0
    assert page.count("caption") == page.count("table") == 4
    assert [tag for tag, _ in page.seen if re.fullmatch("h[1-6]", tag)] == ["h1", "h2", *["h2", "h3", "h3"] * 2, "h2"]


def test_forecasts_that_were_not_used_are_listed_by_feed_and_otherwise_not_mentioned() -> None:
    unused = [UnusedInput(HOSTILE[0], {"late": 1_200, "history-trimmed": 3}), UnusedInput("b", {"repeated": 7})]
    page = read(status_page(view(crowd("a", 3))._replace(unused=unused)))

    assert page.count("img") == 0
    assert page.count("caption") == page.count("table")
    assert f"{HOSTILE[0]}1,2000003" in page.text
    assert "b07000" in page.text
    assert "Overtaken" not in read(status_page(view(crowd("a", 3)))).text


def test_refused_events_are_counted_by_reason_with_the_command_that_shows_them_and_otherwise_not_mentioned() -> None:
    refused = view(crowd("a", 3))._replace(refused=[("unknown-type", 1_200), ("late", 1)], shows_refused="kcat -b <b>")
    page = read(status_page(refused))

    assert "unknown-type1,200late1" in page.text
    assert "kcat -b <b>" in page.text
    assert page.count("caption") == page.count("table")
    assert "Refused" not in read(status_page(view(crowd("a", 3)))).text


def test_new_busy_and_look_alike_experts_are_listed_as_text_and_otherwise_not_mentioned() -> None:
    met = [NewExperts("econ", 21, [HOSTILE[0], *(f"e{number}" for number in range(20))])]
    seen = view(crowd("a", 3))._replace(
        new_experts=met,
        busy_experts=[BusyExpert("sport", "robot", 12_345)],
        look_alikes=[LookAlike("art", HOSTILE[0], "ann")],
    )
    page = read(status_page(seen))

    assert page.count("img") == 0
    assert page.count("caption") == page.count("table")
    assert f"econ21 new in the last week{HOSTILE[0]}, e0" in page.text
    assert "e9" not in page.text
    assert "sport12,345 forecasts beyond those keptrobot" in page.text
    assert f"artids that look alike{HOSTILE[0]} (new), ann" in page.text
    assert "senders" in [attributes.get("href") for _, attributes in page.seen]
    assert "Experts to look at" not in read(status_page(view(crowd("a", 3)))).text


def test_unknown_fields_are_listed_as_text_and_otherwise_not_mentioned() -> None:
    fields = [UnknownField("econ", f"forecast.{HOSTILE[0]}", 1_200)]
    page = read(status_page(view(crowd("a", 3))._replace(unknown_fields=fields)))

    assert page.count("img") == 0
    assert page.count("caption") == page.count("table")
    assert f"econforecast.{HOSTILE[0]}1,200" in page.text
    assert "Unknown" not in read(status_page(view(crowd("a", 3)))).text


def test_lag_is_summed_by_topic_and_what_is_unknown_is_said() -> None:
    lag = [
        InputLag("feed-log", 0, 1_200, 90.0),
        InputLag("feed-log", 1, 34, 7_200.0),
        InputLag("feed-log", 2, None, None),
        InputLag("forecast-events", 0, 0, 0.0, 70.0),
        InputLag("forecast-events", 1, 0, 0.0, 300.0),
        InputLag("control-events", 0, None, None),
    ]
    text = read(status_page(view(lag=lag))).text

    assert "feed-log31,234 (1 not known yet)2 h" in text
    assert "control-events1not known yetnot known yet" in text
    assert "forecast-events20 (waiting-for-transaction: 2, for 5 min)" in text


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_can_be_read_on_its_ground_in_both_schemes(scheme: int) -> None:
    """WCAG 2: 4.5 for text, 3 for what pictures are made of."""
    colours = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", style_sheet().split("@media", 2)[scheme]))
    text = [("--ink", "--card"), ("--soft", "--card"), ("--soft", "--page")]
    text += [(f"--{tone}", f"--{tone}-wash") for tone in ("good", "warn", "bad")]
    drawn = [(f"--{name}", "--card") for name in ("series-1", "series-2", "series-7", "ink", "bad")]

    for pairs, least in ((text, 4.5), (drawn, 3.0)):
        for front, ground in pairs:
            darker, lighter = sorted((_luminance(colours[front]), _luminance(colours[ground])))
            assert (lighter + 0.05) / (darker + 0.05) >= least, (front, ground)

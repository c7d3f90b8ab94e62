"""The status page at ``/`` of a worker: weights and trust of its feeds, and the health of the worker.

One answer of the server: no script, nothing from elsewhere, as large for 10,000 experts as for ten. First what it
shows, then its HTML.
"""

import math
from collections.abc import Iterable, Sequence
from heapq import nlargest
from importlib import resources
from typing import NamedTuple
from urllib.parse import quote

from stream_peer.events.outputs import Certificate, ErrorRateSummary, TrustState, WeightedExpert, Weights
from stream_peer.serve.feed_records import FeedHead
from stream_peer.serve.metrics.observer import InputLag
from stream_peer.serve.metrics.senders import BusyExpert, LookAlike, NewExperts, UnknownField, UnusedInput
from stream_peer.serve.pages.parts import document, escape

TOP_EXPERTS = 8


class ExpertShare(NamedTuple):
    """An expert's weights, in [0, 1]."""

    expert: str
    mix: float
    select: float


class OtherExperts(NamedTuple):
    """How many experts are not listed, and what they have together."""

    experts: int
    mix: float
    select: float


class FeedStatus(NamedTuple):
    """A feed as people see it: ``top`` are its heaviest experts, heaviest first; ``at`` when it last changed."""

    name: str
    status: TrustState
    reasons: Sequence[str]
    questions: float
    resolved: float
    error_rate: ErrorRateSummary
    certificate: Certificate | None
    top: Sequence[ExpertShare]
    others: OtherExperts
    at: str
    settings: str

    @classmethod
    def of(cls, said: Weights | FeedHead, experts: Sequence[WeightedExpert] = ()) -> "FeedStatus":
        """What a record of ``weights`` says. Of its experts those with the largest of either weight are listed."""
        top = [ExpertShare(one.id, one.mix, one.select) for one in nlargest(TOP_EXPERTS, experts, key=_heaviest_by_any)]
        top.sort(key=lambda one: (-one.mix, -one.select, one.expert))
        mix, select = (sum(getattr(one, kind) for one in experts) for kind in ("mix", "select"))
        return cls(
            said.feed,
            said.status,
            said.status_reasons,
            said.questions,
            said.resolved,
            said.error_rate,
            said.certificate,
            top,
            OtherExperts(
                len(experts) - len(top),
                max(mix - sum(one.mix for one in top), 0.0),
                max(select - sum(one.select for one in top), 0.0),
            ),
            said.at,
            said.settings,
        )


class StatusView(NamedTuple):
    """All that the page says.

    ``at`` is the moment of the answer, ISO 8601 UTC; ``reason`` says why the worker is not ready, ``settings`` the hash
    of its own settings; ``events_topic`` is where a first event would be sent; ``refused`` has reasons and counts.
    """

    version: str
    instance: str
    at: str
    ready: bool
    reason: str
    feeds: Sequence[FeedStatus]
    lag: Sequence[InputLag]
    settings: str
    events_topic: str = "forecast-events"
    refused: Sequence[tuple[str, int]] = ()
    shows_refused: str = ""
    unused: Sequence[UnusedInput] = ()
    unknown_fields: Sequence[UnknownField] = ()
    new_experts: Sequence[NewExperts] = ()
    busy_experts: Sequence[BusyExpert] = ()
    look_alikes: Sequence[LookAlike] = ()


def _heaviest_by_any(expert: WeightedExpert) -> tuple[float, float, str]:
    return max(expert.mix, expert.select), expert.mix + expert.select, expert.id


FEEDS_SHOWN = 50
UNUSED_SHOWN = 20
"""Feeds whose forecasts were accepted and not used."""
NEW_SHOWN = 10
"""New experts of a feed that are named."""
_LONGEST_NAME = 60
_REASONS_SHOWN = 6
_WORST_RATE = 0.5
"""Where the axis of error rates ends: there reference answers are noise."""


class _Trust(NamedTuple):
    tone: str
    meaning: str


_TRUST: dict[TrustState, _Trust] = {
    "contradicted": _Trust(
        "bad", "Outcomes or votes contradict the estimated error rate: trust outcomes, not peer losses."
    ),
    "uninformative": _Trust("bad", "Reference answers are wrong nearly as often as right: use the plain mean."),
    "dependent": _Trust("warn", "Experts are not independent: more reference answers may be wrong than estimated."),
    "low-evidence": _Trust("warn", "Too few experts vote on a question."),
    "warming-up": _Trust("warn", "Too few questions yet to judge."),
    "ok": _Trust("good", "No alarm."),
}
_UNUSED = {
    "late": "Late",
    "repeated": "Repeated",
    "overtaken": "Overtaken",
    "too-late": "Too late",
    "history-trimmed": "Trimmed",
}
"""Kinds, and what they are called here."""

_ORDER = {state: place for place, state in enumerate(_TRUST)}


def status_page(view: StatusView) -> str:
    """The page as HTML.

    Parameters
    ----------
    view : StatusView
        What to show. Of more than ``FEEDS_SHOWN`` feeds, those that need attention come first.
    """
    feeds = sorted(view.feeds, key=lambda feed: urgency(feed.status, feed.name))
    shown = feeds[:FEEDS_SHOWN]
    style = resources.files("stream_peer.serve.pages").joinpath("status.css").read_text(encoding="utf-8")
    parts = [_state_of_worker(view), _overview(shown, len(feeds)), *map(_feed, range(len(shown)), shown)]
    if not feeds:
        parts.append(_no_feed(view.events_topic))
    parts += [_refused(view), _unused(view), _unknown_fields(view), _senders(view), _worker(view), _footer(view)]
    return document("Forecaster weights", "\n".join(filter(None, parts)), style=style)


def urgency(status: TrustState, name: str) -> tuple[int, str]:
    """By what feeds are sorted: those that need attention come first.

    Examples
    --------
    >>> sorted([("ok", "a"), ("ok", "b"), ("contradicted", "c")], key=lambda feed: urgency(*feed))[0]
    ('contradicted', 'c')
    """
    return _ORDER[status], name


def _state_of_worker(view: StatusView) -> str:
    state = '<span class="pill good">ready</span>' if view.ready else '<span class="pill bad">not ready</span>'
    reason = f": {escape(view.reason)}" if view.reason and not view.ready else ""
    return (
        f'<p class="about">As of {_moment(view.at)}; refresh to update. '
        f"Worker {_name(view.instance)} is {state}{reason}.</p>"
    )


def _no_feed(topic: str) -> str:
    return (
        '<section class="card"><h2>Feeds</h2><p class="empty">No feed yet: send an event to '
        f"<code>{escape(topic)}</code>. A feed appears here with its first scored question.</p></section>"
    )


def _overview(feeds: Sequence[FeedStatus], of_all: int) -> str:
    """A line for each feed, if there are several."""
    if of_all < 2:
        return ""
    rows = "".join(
        f'<tr><th scope="row"><a href="#feed-{number}">{_name(feed.name)}</a></th><td>{_pill(feed.status)}</td>'
        f"<td>{_mean_rate(feed):.1%}</td><td>{feed.questions:,.0f}</td><td>{_leader(feed)}</td></tr>"
        for number, feed in enumerate(feeds)
    )
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in ("Feed", "Trust", "Wrong reference answers", "Questions", "Largest weight in the mix")
    )
    more = of_all - len(feeds)
    rest = f'<p class="note">{more:,} more: <a href="feeds">all feeds as JSON</a>.</p>' if more else ""
    return (
        f'<section class="card"><h2>{of_all:,} feeds</h2><p class="note">Feeds with alarms come first.</p>'
        f'<div class="wide-table" role="region" tabindex="0" aria-label="All feeds"><table class="feeds">'
        f'<caption class="unseen">Feeds and their trust</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{rest}</section>"
    )


def _feed(number: int, feed: FeedStatus) -> str:
    trust = _TRUST[feed.status]
    return (
        f'<article class="card status" id="feed-{number}" aria-labelledby="name-{number}">'
        f'<header><h2 class="feed" id="name-{number}">Feed <b>{_name(feed.name)}</b></h2>{_pill(feed.status)}</header>'
        f'<p class="meaning">{escape(trust.meaning)}</p>{_reasons(feed.reasons)}'
        f'<div class="sides"><div>{_weights(feed)}</div><div>{_error_rate(feed)}{_facts(feed)}</div></div></article>'
    )


def _reasons(reasons: Sequence[str]) -> str:
    if not reasons:
        return ""
    items = "".join(f"<li>{escape(reason)}</li>" for reason in reasons[:_REASONS_SHOWN])
    more = len(reasons) - _REASONS_SHOWN
    return f'<ul class="reasons">{items}{f"<li>and {more:,} more</li>" if more > 0 else ""}</ul>'


def _weights(feed: FeedStatus) -> str:
    """Both weights of the heaviest experts as bars on one scale."""
    if not feed.top:
        return '<h3>Weights</h3><p class="note">No expert has been scored yet.</p>'
    end = _end_of_axis(feed.top)
    rows = "".join(
        f'<tr><th scope="row">{_name(one.expert)}</th>{_bar(one.mix, end, "mix")}{_bar(one.select, end, "select")}</tr>'
        for one in feed.top
    )
    scale = f'<span class="scale"><span>0%</span><span>{100 * end:g}%</span></span>'
    return (
        '<h3>Weights</h3><table class="weights"><caption class="note"><b>mix</b> combines forecasts, <b>select</b> is '
        'for following one expert. Each sums to 100%.</caption><thead><tr><th scope="col">Expert</th>'
        f'<th scope="col">mix{scale}</th><th scope="col">select{scale}</th></tr></thead>'
        f"<tbody>{rows}{_others(feed.others)}</tbody></table>"
    )


def _bar(weight: float, end: float, kind: str) -> str:
    return (
        f'<td><span class="track"><i class="{kind}" style="width:{min(weight / end, 1.0):.1%}"></i></span>'
        f'<span class="amount">{_percent(weight)}</span></td>'
    )


def _others(others: OtherExperts) -> str:
    if not others.experts:
        return ""
    name = f"{others.experts:,} others" if others.experts > 1 else "1 other"
    cells = "".join(f'<td><span class="amount">{_percent(weight)} together</span></td>' for weight in others[1:])
    return f'<tr class="others"><th scope="row">{name}</th>{cells}</tr>'


def _end_of_axis(top: Iterable[ExpertShare]) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that no bar exceeds, at most 1."""
    largest = max(max(one.mix, one.select) for one in top)
    if largest <= 0.0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(largest))
    return min(next(step * unit for step in (1, 2, 5, 10) if step * unit >= largest * (1 - 1e-9)), 1.0)


def _error_rate(feed: FeedStatus) -> str:
    """The estimate and its interval on an axis from 0 to 1/2, and in words."""
    rate, mean = feed.error_rate, _mean_rate(feed)
    measured = "" if rate.measured is None else f'<i class="measured" style="left:{_place(rate.measured)}"></i>'
    ticks = "".join(f"<span>{tick}%</span>" for tick in range(0, 51, 10))
    seen = "no outcome yet" if rate.measured is None else f"outcomes showed {rate.measured:.1%}"
    key = "" if rate.measured is None else '<span class="key"><i class="measured"></i>measured on outcomes</span>'
    status = "" if rate.status == "ok" else f" Evidence: {escape(rate.status)}."
    return (
        f"<h3>Wrong reference answers</h3><p><b>{mean:.1%}</b>, interval {rate.low:.1%} to {rate.high:.1%}; {seen}."
        f'{status}</p><div class="axis" aria-hidden="true"><div class="rule">'
        f'<i class="range" style="left:{_place(rate.low)};right:calc(100% - {_place(rate.high)})"></i>'
        f'<i class="point" style="left:{_place(mean)}"></i>{measured}</div><div class="ticks">{ticks}</div></div>'
        f'<p class="note keys"><span class="key"><i class="point"></i>estimate</span>'
        f'<span class="key"><i class="range"></i>interval</span>{key}</p>'
        '<p class="note">Share of questions, the mean of both outcomes; above 40% answers are mostly noise.</p>'
    )


def _facts(feed: FeedStatus) -> str:
    facts = [
        ("Questions", f"{feed.questions:,.0f} scored, {feed.resolved:,.0f} resolved"),
        ("Certified regret", _certified(feed)),
        ("Updated", _moment(feed.at)),
        ("Feed settings", f"<code>{escape(feed.settings)}</code>"),
        ("All fields", f'<a href="feeds/{quote(feed.name, safe="")}">as JSON</a>'),
    ]
    return (
        '<dl class="facts">' + "".join(f"<div><dt>{name}</dt><dd>{said}</dd></div>" for name, said in facts) + "</dl>"
    )


def _certified(feed: FeedStatus) -> str:
    bound = feed.certificate
    if bound is None:
        return "none: too little evidence or trust for a bound, questions with options or thresholds, or a memory"
    share = bound.a_question(feed.questions)
    if share is None:
        return "none yet: the bound is above the largest loss, 1 a question"
    return (
        f"at most {bound.regret_at_most:,.1f} in summed loss, {share:.3f} a question, when following select; "
        f"{bound.confidence:.0%} confidence, if errors are independent"
    )


def _refused(view: StatusView) -> str:
    """Refused events by reason; nothing if there are none."""
    if not view.refused:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(reason)}</th><td>{count:,}</td></tr>' for reason, count in view.refused
    )
    return (
        '<section class="card"><h2>Refused events</h2><div class="wide-table" role="region" tabindex="0" '
        'aria-label="Refused events"><table class="lag"><caption class="note">Since this worker started; not used, and '
        f"kept as dead letters. See them: <code>{escape(view.shows_refused)}</code></caption>"
        '<thead><tr><th scope="col">Reason</th><th scope="col">Events</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _unused(view: StatusView) -> str:
    """Forecasts that were accepted and not used, a row a feed; nothing if there are none."""
    if not view.unused:
        return ""
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("Feed", *_UNUSED.values()))
    rows = "".join(
        f'<tr><th scope="row">{_name(feed)}</th>{"".join(f"<td>{counts.get(kind, 0):,}</td>" for kind in _UNUSED)}</tr>'
        for feed, counts in view.unused
    )
    return (
        '<section class="card"><h2>Forecasts not used as stated</h2><div class="wide-table" role="region" tabindex="0" '
        'aria-label="Forecasts not used as stated"><table class="lag"><caption class="note">Accepted since this worker '
        "started. Late: used only from <code>backdate_limit</code> before they arrived (a feed with past events needs "
        "<code>history: true</code>). Repeated, overtaken: late, and the expert had said the same, or something "
        "newer. Too late: the history of their question is no longer kept (<code>history_for</code>), or they are of a "
        "new option or threshold after the resolution. Trimmed: the expert has too many forecasts of one "
        "question.</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _unknown_fields(view: StatusView) -> str:
    """Fields that events have and their types have not, the most frequent first; nothing if there are none."""
    if not view.unknown_fields:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{_name(feed)}</th><td>{_name(field)}</td><td>{count:,}</td></tr>'
        for feed, field, count in view.unknown_fields
    )
    return (
        '<section class="card"><h2>Unknown fields</h2><div class="wide-table" role="region" tabindex="0" '
        'aria-label="Unknown fields"><table class="lag"><caption class="note">Fields of events, since this worker '
        "started, that the type of the event does not have. They are ignored. Is one misspelt, or was it to change the "
        'meaning?</caption><thead><tr><th scope="col">Feed</th><th scope="col">Field</th>'
        f'<th scope="col">Events</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _senders(view: StatusView) -> str:
    """New experts, those that send very often, and look-alikes, a row each; nothing if there are none."""
    rows = "".join(
        f'<tr><th scope="row">{_name(new.feed)}</th><td>{new.count:,} new in the last week</td>'
        f"<td>{', '.join(map(_name, new.experts[:NEW_SHOWN]))}{', …' if new.count > NEW_SHOWN else ''}</td></tr>"
        for new in view.new_experts
    )
    rows += "".join(
        f'<tr><th scope="row">{_name(busy.feed)}</th><td>{busy.forecasts:,} forecasts beyond those kept</td>'
        f"<td>{_name(busy.expert)}</td></tr>"
        for busy in view.busy_experts
    )
    rows += "".join(
        f'<tr><th scope="row">{_name(alike.feed)}</th><td>ids that look alike</td>'
        f"<td>{_name(alike.expert)} (new), {_name(alike.earlier)}</td></tr>"
        for alike in view.look_alikes
    )
    if not rows:
        return ""
    return (
        '<section class="card"><h2>Experts to look at</h2><div class="wide-table" role="region" tabindex="0" '
        'aria-label="Experts to look at"><table class="lag left"><caption class="note">Since this worker started. New, '
        "or an id that looks like another: is one misspelt? Forecasts beyond those kept: the expert sends very often, "
        'and of one question only its newest forecasts are kept. More of them: <a href="senders">as JSON</a>.</caption>'
        '<thead><tr><th scope="col">Feed</th><th scope="col">What</th>'
        f'<th scope="col">Experts</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _worker(view: StatusView) -> str:
    """How far behind this worker is, a row a topic."""
    topics: dict[str, list[InputLag]] = {}
    for lag in view.lag:
        topics.setdefault(lag.topic, []).append(lag)
    rows = "".join(_lag(topic, lags) for topic, lags in sorted(topics.items()))
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in ("Topic", "Partitions", "Records waiting", "Oldest record age")
    )
    table = (
        '<table class="lag"><caption class="note">Records that this worker has still to process.</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )
    nothing = '<p class="note">It owns no partition now.</p>'
    return f'<section class="card"><h2>This worker</h2>{table if topics else nothing}</section>'


def _lag(topic: str, lags: Sequence[InputLag]) -> str:
    known = [lag for lag in lags if lag.records is not None]
    ages = [lag.seconds for lag in lags if lag.seconds is not None]
    waiting = f"{sum(lag.records or 0 for lag in known):,}" if known else "not known yet"
    unknown = len(lags) - len(known)
    waiting += f" ({unknown:,} not known yet)" if known and unknown else ""
    held = [lag.waiting for lag in lags if lag.waiting > 0]
    waiting += f" (waiting-for-transaction: {len(held):,}, for {_duration(max(held))})" if held else ""
    return (
        f'<tr><th scope="row">{escape(topic)}</th><td>{len(lags):,}</td><td>{waiting}</td>'
        f"<td>{_duration(max(ages)) if ages else 'not known yet'}</td></tr>"
    )


def _footer(view: StatusView) -> str:
    links = (("feeds", "feeds as JSON"), ("metrics", "metrics"), ("openapi.json", "all paths"))
    listed = ", ".join(f'<a href="{path}">{name}</a>' for path, name in links)
    return (
        f"<footer><p>stream_peer {escape(view.version)}, settings of the process <code>{escape(view.settings)}</code>. "
        f"For programs: {listed}.</p></footer>"
    )


def _leader(feed: FeedStatus) -> str:
    return f"{_name(feed.top[0].expert)} {_percent(feed.top[0].mix)}" if feed.top else "none"


def _mean_rate(feed: FeedStatus) -> float:
    return (feed.error_rate.zero + feed.error_rate.one) / 2


def _place(rate: float) -> str:
    """Where a rate lies on its axis; what is beyond 1/2 at its end."""
    return f"{min(max(rate / _WORST_RATE, 0.0), 1.0):.1%}"


def _pill(status: TrustState) -> str:
    return f'<span class="pill {_TRUST[status].tone}">{escape(status)}</span>'


def _name(name: str) -> str:
    """Somebody else's text, cut and kept from turning the text around it."""
    cut = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return f"<bdi>{escape(cut)}</bdi>"


def _percent(weight: float) -> str:
    """A weight, with more decimals the smaller it is.

    Examples
    --------
    >>> _percent(0.5), _percent(0.0123), _percent(0.00012), _percent(0.000001)
    ('50.0%', '1.2%', '0.012%', 'under 0.001%')
    """
    if 0.0 < weight < 0.00001:
        return "under 0.001%"
    return f"{weight:.1%}" if weight >= 0.01 or weight == 0.0 else f"{100 * weight:.2g}%"


def _moment(at: str) -> str:
    """An ISO moment, to the second."""
    shown = at.removesuffix("Z").split(".")[0].replace("T", " ")
    return f'<time datetime="{escape(at)}">{escape(shown)} UTC</time>'


def _duration(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> _duration(0.0), _duration(4.2), _duration(300.0), _duration(9000.0), _duration(200_000.0)
    ('0 s', '4.2 s', '5 min', '2.5 h', '2.3 days')
    """
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s"

"""One self-contained page about what the output topics said."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import NamedTuple

from stream_peer import __version__
from stream_peer.adapters.history import DeadLetter, FeedHistory, History, Scores
from stream_peer.adapters.report_plots import (
    Plot,
    certificate_plot,
    error_rate_plot,
    leaders,
    loss_plot,
    paint,
    weights_plot,
)
from stream_peer.events.outputs import WeightedExpert, Weights
from stream_peer.pages.document import document
from stream_peer.pages.svg import FULL, HALF, SERIES, Size, both_widths

SHOWN_DEAD_LETTERS = 50
_TONES = {"ok": "good", "warming-up": "warn", "low-evidence": "warn", "dependent": "warn"}
_MIXERS = {"mean": "plain mean", "peer": "peer losses", "truth_slow": "outcomes, slow", "truth_fast": "outcomes, fast"}
_ONLY = {
    "weights of the paper": "exponential weights on peer losses, as the preset paper says; outcomes move none of them",
    "selection weights": "the weights by which one expert is followed also make the mix",
    "gradient-hedge": "exponential weights on the gradient of the mixed forecast's own peer loss",
    "gradient-normal-hedge": "AdaNormalHedge on the gradient of the mixed forecast's own peer loss",
    "outcomes": "weights that learn from outcomes only",
    "hybrid": "weights that learn from outcomes where there are any, else from reference answers",
    "five": "these four mixers and the mean, in shares that outcomes give them",
}


class _Column(NamedTuple):
    heading: str
    title: str
    value: Callable[[WeightedExpert], float | None]
    digits: int
    share: bool = False


_COLUMNS = (
    _Column("mix", "Share in the mixed forecast", lambda e: e.mix, 3, share=True),
    _Column("select", "Probability of being the one expert to follow", lambda e: e.select, 3, share=True),
    _Column("questions", "Questions scored", lambda e: e.questions, 0),
    _Column("coverage", "Share of all questions that it answered", lambda e: e.coverage, 2),
    _Column("peer loss", "Mean loss against the others' answers; smaller is better", lambda e: e.peer_loss, 3),
    _Column("outcome loss", "Mean loss against outcomes; smaller is better", lambda e: e.outcome_loss, 3),
    _Column("resolved", "Questions with an outcome", lambda e: e.resolved, 0),
)


def render(history: History, *, title: str = "Whom to listen to", variants: Mapping[str, str] | None = None) -> str:
    """The report as HTML.

    Parameters
    ----------
    history : History
        What the output topics said. Feeds without weights are left out.
    title : str
        Heading of the page.
    variants : mapping of feeds to text, optional
        What of a feed's settings was not as built in.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    feeds = [feed for _, feed in sorted(history.feeds.items()) if feed.weights is not None]
    parts = [_feed(feed, number, variants or {}) for number, feed in enumerate(feeds)]
    if not parts:
        parts = ['<section class="card"><p class="empty">No weights were published.</p></section>']
    letters = _dead_letters(history.dead_letters)
    script = resources.files("stream_peer.adapters").joinpath("report.js").read_text(encoding="utf-8")
    return document(title, "\n".join([*parts, letters, _footer(history)]), script)


def _feed(feed: FeedHistory, number: int, variants: Mapping[str, str]) -> str:
    weights = feed.weights
    if weights is None:
        return ""
    scores = feed.scores()
    return "\n".join(
        [
            _heading(weights, variants.get(weights.feed, "")),
            _figures(feed, weights),
            _verdict(scores),
            _weights_card(feed, weights, number),
            '<section class="two">',
            _loss_card(feed, scores, number),
            _error_rate_card(feed, number),
            _certificate_card(feed, weights, number),
            _mixer_card(weights, variants.get(weights.feed, "")),
            "</section>",
            _experts(weights),
        ]
    )


def _heading(weights: Weights, variant: str) -> str:
    reasons = f" ({', '.join(weights.status_reasons)})" if weights.status_reasons else ""
    tone = _TONES.get(weights.status, "bad")
    chosen = f" Not as built in: <code>{escape(variant)}</code>." if variant else ""
    return (
        f'<header><p>Feed <b>{escape(weights.feed)}</b></p><span class="pill {tone}">{escape(weights.status)}</span>'
        f'</header><p class="about">{_count(weights.questions)} questions scored, {_count(weights.resolved)} of them '
        f"resolved, {len(weights.experts)} experts, as of {escape(weights.at)}{escape(reasons)}.{chosen}</p>"
    )


def _figures(feed: FeedHistory, weights: Weights) -> str:
    rate = weights.error_rate
    measured = "no outcome yet" if rate.measured is None else f"outcomes showed {rate.measured:.1%}"
    rates = feed.error_rates
    effective = f", {rates.effective_questions:,.0f} effective questions" if rates else ""
    cards = [
        (
            "Wrong reference answers",
            f"{(rate.zero + rate.one) / 2:.1%}",
            f"{rate.low:.1%} to {rate.high:.1%}; {measured}",
        ),
        ("Evidence", escape(rate.status), f"of the error rate{effective}"),
        ("Top weight", *_top_weight(weights.experts)),
        ("Certified regret", *_certified(weights)),
    ]
    return '<section class="figures">' + "".join(_figure(*card) for card in cards) + "</section>"


def _top_weight(experts: Sequence[WeightedExpert]) -> tuple[str, str]:
    if not experts:
        return "none", "no expert has been scored"
    top = max(experts, key=lambda expert: expert.mix)
    return f"{top.mix:.1%}", f"{escape(_short(top.id))}, in the mix"


def _certified(weights: Weights) -> tuple[str, str]:
    certificate = weights.certificate
    if certificate is None:
        return "none", "not enough evidence for a bound"
    share = certificate.regret_at_most / max(weights.questions, 1.0)
    note = f"at most, in summed loss; {share:.3f} a question, {certificate.confidence:.0%} confidence"
    return f"{certificate.regret_at_most:,.1f}", note


def _figure(name: str, value: str, note: str) -> str:
    inside = f'<p class="name">{name}</p><p class="value">{value}</p><p class="note">{note}</p>'
    return f'<div class="card figure">{inside}</div>'


def _verdict(scores: Scores | None) -> str:
    if scores is None:
        return ""
    gain = round(100 * (1.0 - scores.mix / scores.mean)) if scores.mean else 0
    better = f"{abs(gain)}% {'less' if gain > 0 else 'more'} than the plain mean" if gain else "as the plain mean did"
    rows = [("mix", scores.mix, True), ("mix, stretched", scores.stretched, True)]
    rows += [("mean", scores.mean, False), ("median", scores.median, False)]
    best = scores.best
    if best is not None:
        rows.append((f"{_short(best.expert_id)}, best expert in hindsight", best.loss, False))
    widest = max(loss for _, loss, _ in rows) or 1.0
    bars = "".join(_bar(name, loss, loss / widest, ours=ours) for name, loss, ours in rows)
    return (
        f'<section class="card"><p class="verdict">On {scores.questions:,} resolved questions the mix lost '
        f'{scores.mix:.3f} a question, {better}.</p><div class="bars">{bars}</div>'
        '<p class="note" style="margin-top:14px">Brier score: the squared distance of the forecast from the outcome. '
        "Smaller is better. Forecasts were fixed before the outcomes came.</p></section>"
    )


def _bar(name: str, amount: float, share: float, *, ours: bool) -> str:
    mark = ' class="ours"' if ours else ""
    return (
        f'<span class="who">{escape(name)}</span><span class="track"><i{mark} style="width:{share:.1%}"></i></span>'
        f'<span class="amount">{amount:.3f}</span>'
    )


def _weights_card(feed: FeedHistory, weights: Weights, number: int) -> str:
    by_id = {expert.id: expert for expert in weights.experts}
    keys = [
        (f"{_short(name)} {by_id[name].mix:.1%}", f"--series-{place + 1}", "")
        for place, name in enumerate(leaders(weights))
    ]
    if len(weights.experts) > SERIES:
        keys.append((f"{len(weights.experts) - SERIES} others", "--muted", ""))
    text = "Each line is an expert's share in the mixed forecast. It moves before any outcome is known."
    picture = _picture(weights_plot(feed), FULL, f"{number}-weights")
    return _plot_card("Weights over time", text, keys, picture, wide=True)


def _loss_card(feed: FeedHistory, scores: Scores | None, number: int) -> str:
    keys = [("mix", "--series-1", ""), ("mean", "--series-2", ""), ("median", "--series-3", "")]
    if scores is not None and scores.best is not None:
        keys.append((f"{_short(scores.best.expert_id)}, best in hindsight", "--series-4", "dashed"))
    text = "Mean Brier score so far, over the questions whose outcome was revealed. Lower is better."
    return _plot_card("Loss over time", text, keys, _picture(loss_plot(feed), HALF, f"{number}-loss"))


def _error_rate_card(feed: FeedHistory, number: int) -> str:
    keys = [
        ("estimate", "--series-1", ""),
        ("its interval", "--band", "area"),
        ("measured on outcomes", "--truth", "dashed"),
    ]
    text = "Share of wrong reference answers, estimated without outcomes. At 50% the weights would be noise."
    picture = _picture(error_rate_plot(feed), HALF, f"{number}-rate")
    return _plot_card("How often the crowd is wrong", text, keys, picture)


def _certificate_card(feed: FeedHistory, weights: Weights, number: int) -> str:
    condition = weights.certificate.conditional_on if weights.certificate else "independent errors"
    text = (
        f"How much more than the best single expert select can have lost a question, at most, given {condition}. "
        "Above 1 it says nothing yet; it falls as evidence comes in."
    )
    keys = [("certified regret a question", "--series-1", "")]
    return _plot_card("Certificate", text, keys, _picture(certificate_plot(feed), HALF, f"{number}-certificate"))


def _mixer_card(weights: Weights, variant: str) -> str:
    only = _only_mixer(variant)
    if only:
        shares, text = [(only, 1.0)], f"One way to weigh the experts: {_ONLY.get(only, variant)}."
    else:
        shares = [(label, getattr(weights.mixer, name)) for name, label in _MIXERS.items()]
        text = "Shares of four ways to weigh the experts. Outcomes count as soon as there are any."
    bars = "".join(_bar(label, share, share, ours=label != "plain mean") for label, share in shares)
    return (
        f'<div class="card"><h2>What the mix is made of</h2><p class="note">{escape(text)}</p>'
        f'<div class="bars" style="margin-top:18px">{bars}</div><p class="note" style="margin-top:18px">Stretch '
        f"{weights.stretch:+.2f}: the stretched forecast lies {1 + weights.stretch:.2f} times as far from one half "
        "as the mix.</p></div>"
    )


def _only_mixer(variant: str) -> str:
    """The name of the mixer that makes the mix alone, by what was not as built in; empty if there are several."""
    chosen = dict(part.partition("=")[::2] for part in variant.split(", "))
    if chosen.get("preset") == "paper":
        return "weights of the paper"
    mixer = chosen.get("method.mixer", "auto")
    return {"auto": "", "select": "selection weights"}.get(mixer, mixer)


def _plot_card(title: str, text: str, keys: Iterable[tuple[str, str, str]], picture: str, *, wide: bool = False) -> str:
    legend = "".join(
        f'<li><i class="{kind}" style="--c:var({colour});background:var({colour})"></i>{escape(name)}</li>'
        for name, colour, kind in keys
    )
    tag = "section" if wide else "div"
    return (
        f'<{tag} class="card"><h2>{title}</h2><p class="note">{escape(text)}</p>'
        f'<ul class="legend">{legend}</ul>{picture}</{tag}>'
    )


def _picture(plot: Plot, size: Size, salt: str) -> str:
    if not any(len(set(curve.x)) > 1 for curve in plot.curves):
        return '<p class="empty">Nothing to draw yet.</p>'
    return both_widths(lambda axes: paint(axes, plot), size, salt=salt)


def _experts(weights: Weights) -> str:
    heads = ['<th data-kind="text"><button type="button">expert</button></th>']
    for column in _COLUMNS:
        sort = ' aria-sort="descending"' if column.heading == "mix" else ""
        heads.append(f'<th{sort} title="{column.title}"><button type="button">{column.heading}</button></th>')
    ranked = sorted(weights.experts, key=lambda expert: (-expert.mix, expert.id))
    widest = max((max(e.mix, e.select) for e in ranked), default=1.0) or 1.0
    rows = "\n".join(f"<tr>{_expert(expert, widest)}</tr>" for expert in ranked)
    return (
        '<section class="card"><h2>Experts</h2><p class="note">Press a heading to sort. Losses: smaller is better; '
        "– is not known yet.</p>"
        f'<div class="scroll"><table><thead><tr>{"".join(heads)}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
        "</section>"
    )


def _expert(expert: WeightedExpert, widest: float) -> str:
    cells = [f'<td title="{escape(expert.id)}">{escape(expert.id)}</td>']
    for column in _COLUMNS:
        value = column.value(expert)
        if value is None:
            cells.append('<td data-value="">–</td>')
            continue
        share = f' class="share" style="--share:{value / widest:.3f}"' if column.share else ""
        cells.append(f'<td data-value="{value:.6g}"{share}>{value:,.{column.digits}f}</td>')
    return "".join(cells)


def _dead_letters(letters: Sequence[DeadLetter]) -> str:
    if not letters:
        return ""
    shown = "".join(
        f"<li><b>{escape(letter.reason)}</b> {escape(letter.message)}"
        f"<code>{escape(letter.payload.decode('utf-8', 'replace'))}</code></li>"
        for letter in letters[:SHOWN_DEAD_LETTERS]
    )
    more = len(letters) - SHOWN_DEAD_LETTERS
    rest = f'<p class="note">{more:,} more are in the topic dead-letters.</p>' if more > 0 else ""
    return (
        f'<section class="card"><h2>Dead letters</h2><p class="note">{len(letters):,} messages could not be used. They '
        f'were set aside; the next message was processed as if they had not been there.</p><ul class="letters">{shown}'
        f"</ul>{rest}</section>"
    )


def _footer(history: History) -> str:
    newest = [feed.weights for feed in history.feeds.values() if feed.weights is not None]
    states = "; ".join(
        f"{escape(w.feed)}: settings <code>{escape(w.settings)}</code>, revision {w.revision:,}" for w in newest
    )
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(history.records.items()))
    return f"<footer><p>{states}</p><p>Records read: {escape(counts)}. stream_peer {escape(__version__)}</p></footer>"


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"


def _count(amount: float) -> str:
    return f"{amount:,.0f}"

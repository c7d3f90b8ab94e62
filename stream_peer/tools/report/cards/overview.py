"""The first things to read: the state, four figures, how the mix did, what it is made of, shadows, and the settings."""

import json
from collections.abc import Iterator, Sequence

import msgspec

from stream_peer.events.outputs import ShadowScores, WeightedExpert, Weights
from stream_peer.serve.pages.parts import escape
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.settings.process.shown import shown_feed_settings
from stream_peer.tools.report.cards.parts import FeedPage, bar, card, count, figure, html_table, pill, short


def heading_card(page: FeedPage) -> str:
    """Name of the feed, its state of trust and why."""
    weights = page.weights
    reasons = f" ({'; '.join(weights.status_reasons)})" if weights.status_reasons else ""
    chosen = f" Settings other than the default: <code>{escape(page.variant)}</code>." if page.variant else ""
    return (
        f'<header id="feed-{page.number}"><h2 class="feed">Feed <b>{escape(weights.feed)}</b></h2>'
        f'{pill(weights.status)}</header><p class="about">{count(weights.questions)} questions scored, '
        f"{count(weights.resolved)} of them resolved, {len(weights.experts)} experts, as of {escape(weights.at)}"
        f"{escape(reasons)}.{chosen}</p>"
    )


def figures(page: FeedPage) -> str:
    """Error rate, evidence, top weight and certificate in large type."""
    weights, rate, rates = page.weights, page.weights.error_rate, page.feed.error_rates
    measured = "no outcome yet" if rate.measured is None else f"outcomes showed {rate.measured:.1%}"
    effective = f", {rates.effective_questions:,.0f} effective questions" if rates else ""
    interval = f"{rate.low:.1%} to {rate.high:.1%}; {measured}"
    cards = [
        ("Wrong reference answers", f"{(rate.zero + rate.one) / 2:.1%}", interval),
        ("Evidence", escape(rate.status), f"of the error rate{effective}"),
        ("Top weight", *_top_weight(weights.experts)),
        ("Certified regret", *_certified(weights)),
    ]
    return '<section class="figures">' + "".join(_figure(*each) for each in cards) + "</section>"


def verdict_card(page: FeedPage) -> str:
    """Losses of the published forecasts and the best expert as bars, and what they say."""
    scores = page.scores
    if scores is None:
        return ""
    gain = round(100 * (1.0 - scores.mix / scores.mean)) if scores.mean else 0
    better = f"{abs(gain)}% {'less' if gain > 0 else 'more'} than the plain mean" if gain else "as the plain mean did"
    rows = [("mix", scores.mix, True), ("mix, stretched", scores.stretched, True)]
    rows += [("mean", scores.mean, False), ("median", scores.median, False)]
    if scores.best is not None:
        rows.append((f"{short(scores.best.expert_id)}, best expert in hindsight", scores.best.loss, False))
    widest = max(loss for _, loss, _ in rows) or 1.0
    bars = "".join(bar(name, loss, loss / widest, ours=ours) for name, loss, ours in rows)
    return (
        f'<section class="card"><p class="verdict">On {scores.questions:,} resolved questions the mix lost '
        f'{scores.mix:.3f} a question, {better}.</p><div class="bars">{bars}</div>'
        '<p class="note" style="margin-top:14px">Brier score: the squared distance of the forecast from the outcome. '
        f"Smaller is better. Forecasts were fixed before the outcomes came.{_of_best(page)}</p></section>"
    )


def _of_best(page: FeedPage) -> str:
    """On what the best expert was best, which need not be all."""
    best = page.scores.best if page.scores else None
    if best is None:
        return " No expert answered half of them."
    return (
        " The best expert is the best of those that answered at least half of them; on its "
        f"{best.questions:,} questions the mix lost {best.mix_there:.3f}."
    )


def _top_weight(experts: Sequence[WeightedExpert]) -> tuple[str, str]:
    if not experts:
        return "none", "no expert has been scored"
    top = max(experts, key=lambda expert: expert.mix)
    return f"{top.mix:.1%}", f"{escape(short(top.id))}, in the mix"


def _certified(weights: Weights) -> tuple[str, str]:
    certificate = weights.certificate
    if certificate is None:
        return "none", "too little evidence or trust for a bound, or a memory"
    share = certificate.a_question(weights.questions)
    if share is None:
        return "none yet", "the bound is above 1 a question, the largest loss"
    note = f"at most, in summed loss; {share:.3f} a question, {certificate.confidence:.0%} confidence"
    return f"{certificate.regret_at_most:,.1f}", note


def _figure(name: str, value: str, note: str) -> str:
    inside = f'<p class="name">{name}</p><p class="value">{value}</p><p class="note">{note}</p>'
    return f'<div class="card figure">{inside}</div>'


def settings_card(page: FeedPage) -> str:
    """Name, value and default of each, and the hash that all outputs bear."""
    if page.settings is None:
        return ""
    rows = [(f"<code>{escape(name)}</code>", *map(_shown, values)) for name, *values in changed(page.settings)]
    text = f"Settings that differ from the default. Every output has the hash {page.weights.settings} of all settings."
    if not rows:
        return card("Settings", f"{text} Here all have the default.", "", wide=True)
    listed = html_table("Settings that differ from the default", ("setting", "here", "default"), rows, kind="left")
    return card("Settings", text, listed, wide=True)


def changed(settings: FeedSettings) -> Iterator[tuple[str, object, object]]:
    """Path, value and default of each setting that differs from it."""
    built_in = dict(shown_feed_settings(FeedSettings()))
    for name, value in shown_feed_settings(settings):
        if value != built_in.get(name):
            yield name, value, built_in.get(name)


def _shown(value: object) -> str:
    return f"<code>{escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}</code>"


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


def mixers_card(page: FeedPage) -> str:
    """Shares of the ways to weigh the experts, or the only one."""
    weights, variant = page.weights, page.variant
    only = _only_mixer(variant)
    if only:
        shares, text = [(only, 1.0)], f"One way to weigh the experts: {_ONLY.get(only, variant)}."
    else:
        shares = [(label, getattr(weights.mixer, name)) for name, label in _MIXERS.items()]
        text = "Shares of four ways to weigh the experts. Outcomes count as soon as there are any."
    bars = "".join(bar(label, share, share, ours=label != "plain mean") for label, share in shares)
    stretch = round(weights.stretch, 2) + 0.0
    return (
        f'<div class="card"><h3>Mixers of the mix</h3><p class="note">{escape(text)}</p>'
        f'<div class="bars" style="margin-top:18px">{bars}</div><p class="note" style="margin-top:18px">Stretch '
        f"{stretch:+.2f}: the stretched forecast lies {1 + stretch:.2f} times as far from one half "
        "as the mix.</p></div>"
    )


def _only_mixer(variant: str) -> str:
    """The name of the mixer that makes the mix alone, by what differed from the default; empty if there are several."""
    chosen = dict(part.partition("=")[::2] for part in variant.split(", "))
    if chosen.get("preset") == "paper":
        return "weights of the paper"
    mixer = chosen.get("method.mixer", "auto")
    return {"auto": "", "select": "selection weights"}.get(mixer, mixer)


_SHADOW_HEADS = (
    "shadow",
    "Brier score",
    "of the live mix",
    "log score",
    "of the live mix",
    "summed regret",
    "resolved",
)


def shadows_card(page: FeedPage) -> str:
    """Each shadow's scores beside those of the live mixers on the same questions."""
    live = page.weights.shadows
    shadows = [*([] if live is msgspec.UNSET else live), *page.shadows]
    if not shadows:
        return ""
    text = (
        "Forecasts under other settings on the same questions, before their outcomes. Scores are of stretched "
        "scored forecasts; smaller is better. Regret below 0: the shadow lost less than the live mix."
    )
    return card(
        "Shadows", text, html_table("Shadows beside the live mix", _SHADOW_HEADS, map(_shadow_row, shadows)), wide=True
    )


def _shadow_row(shadow: ShadowScores) -> tuple[str, ...]:
    scores = (shadow.brier, shadow.live_brier, shadow.log_score, shadow.live_log_score)
    regret = f"{shadow.regret:+.2f}" if round(shadow.regret, 2) else "0.00"
    return escape(shadow.name), *(figure(score, 4) for score in scores), regret, figure(shadow.questions, 0)

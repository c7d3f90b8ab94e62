"""The table of experts, to be sorted by any of its columns, and why the leading ones have their weights."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stream_peer.events.outputs import WeightedExpert
from stream_peer.serve.explanation import CauseOfMove, WeightExplanation
from stream_peer.serve.pages.parts import escape
from stream_peer.tools.explain.words import BEYOND, KINDS, decimals_of, goes_beyond, percent, points
from stream_peer.tools.replay.history import by_mix
from stream_peer.tools.report.cards.parts import UNKNOWN, FeedPage, card, figure, html_table, scrolling, short
from stream_peer.tools.report.track_record import FEWEST_CALIBRATED, FEWEST_SKILLED, Score

SHOWN = 2_000
"""Rows of the page, those with the most weight: ten thousand would be a slow page of many megabytes."""
_HEAVIEST = 10
"""So many of the first rows are looked at to say what a skill below 0 means beside a large weight."""
PRINTED = 60
"""Rows that are printed, as the style sheet has it; a screen shows all."""


class _Known(NamedTuple):
    """An expert's entry in ``weights``, and how it did on resolved questions."""

    expert: WeightedExpert
    score: Score | None


class _Column(NamedTuple):
    heading: str
    title: str
    value: Callable[[_Known], float | None]
    digits: int
    share: bool = False


def _scored(value: Callable[[Score], float | None]) -> Callable[[_Known], float | None]:
    """A column of the score, unknown without one."""
    return lambda known: None if known.score is None else value(known.score)


_OUTCOME_LOSS = _Column(
    "outcome loss", "Mean loss against outcomes; smaller is better", lambda k: k.expert.outcome_loss, 3
)
_BRIER = _Column("Brier", "Mean squared loss; smaller is better", _scored(lambda s: s.skill.loss), 3)
_COLUMNS = (
    _Column("mix", "Share in the mixed forecast", lambda k: k.expert.mix, 3, share=True),
    _Column("select", "Probability of being the one expert to follow", lambda k: k.expert.select, 3, share=True),
    _Column("questions", "Questions scored, each by the share of its rounds", lambda k: k.expert.questions, 0),
    _Column("coverage", "Share of all questions that it answered", lambda k: k.expert.coverage, 2),
    _Column("peer loss", "Mean loss against the others' answers; smaller is better", lambda k: k.expert.peer_loss, 3),
    _OUTCOME_LOSS,
    _Column(
        "judged on",
        "Resolved questions whose last round it answered: the columns to the right are of these",
        lambda k: k.score.skill.questions if k.score else 0,
        0,
    ),
    _BRIER,
    _Column(
        "difficulty",
        "Mean Brier score of the plain mean on the same questions; small: they were easy",
        _scored(lambda s: s.skill.difficulty),
        3,
    ),
    _Column(
        "skill",
        "1 - Brier/difficulty: above 0 it did better than the plain mean on the questions that it answered; "
        f"from {FEWEST_SKILLED} resolved questions on",
        _scored(lambda s: s.told_skill),
        2,
    ),
    _Column("±", "Standard deviation of the skill", _scored(lambda s: s.told_deviation), 2),
    _Column("log score", "Mean logarithmic loss in nats; smaller is better", _scored(lambda s: s.log_score), 3),
    _Column(
        "miscali\u00adbration",
        f"Part of the Brier score that recalibration would remove; from {FEWEST_CALIBRATED} resolved questions on",
        _scored(lambda s: s.murphy.miscalibration if s.murphy else None),
        3,
    ),
)
_TEXT = (
    "Press a heading to sort. Losses: smaller is better. An expert that answers only easy questions has a small Brier"
    " score without skill: compare it with the difficulty, the plain mean's score on the same questions. – is not"
    " known yet."
)


_WORSE = (
    " Experts are sorted by mix, which compares them with each other. Skill compares each with the mean of all, where"
    " errors cancel: few single experts beat it, and so skill may be below 0 where mix is large."
)


def experts_card(page: FeedPage) -> str:
    """All experts, those with the most weight first."""
    ranked = by_mix(page.weights)[:SHOWN]
    record = page.record
    known = [_Known(expert, record.expert_score(expert.id) if record else None) for expert in ranked]
    columns = [column for column in _COLUMNS if column is not _OUTCOME_LOSS or _differs(known)]
    heads = ['<th scope="col" data-kind="text"><button type="button">expert</button></th>']
    for column in columns:
        sort = ' aria-sort="descending"' if column.heading == "mix" else ""
        name = f'<button type="button" title="{escape(column.title)}">{column.heading}</button>'
        heads.append(f'<th scope="col"{sort}>{name}</th>')
    widest = max((max(e.mix, e.select) for e in ranked), default=1.0) or 1.0
    rows = "\n".join(_row(each, columns, widest) for each in known)
    inside = (
        '<table class="sorted"><caption class="unseen">Experts; press a heading to sort by it</caption>'
        f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    )
    printed = f'<p class="note printed">The first {PRINTED} of {len(known)}.</p>' if len(known) > PRINTED else ""
    listed = f"{scrolling('Experts', inside)}{printed}"
    left_out = len(page.weights.experts) - len(ranked)
    more = f" {left_out:,} more with less weight are not listed." if left_out else ""
    skills = [each.score.told_skill for each in known[:_HEAVIEST] if each.score]
    worse = _WORSE if any(skill is not None and skill < 0.0 for skill in skills) else ""
    return f'<section class="card"><h3>Experts</h3><p class="note">{_TEXT}{worse}{more}</p>{listed}</section>'


def _differs(known: Sequence[_Known]) -> bool:
    """Whether the losses that the feed is scored by are others than the Brier scores, as far as they are shown."""
    return any(figure(_OUTCOME_LOSS.value(each)) != figure(_BRIER.value(each)) for each in known)


def _row(known: _Known, columns: Sequence[_Column], widest: float) -> str:
    name = escape(known.expert.id)
    cells = [f'<th scope="row" title="{name}">{name}</th>']
    for column in columns:
        value = column.value(known)
        if value is None:
            cells.append(f"<td>{UNKNOWN}</td>")
            continue
        share = f' class="share" style="--share:{value / widest:.2f}"' if column.share else ""
        cells.append(f"<td{share}>{figure(value, column.digits)}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def why_card(page: FeedPage) -> str:
    """The explanations of the leaders, each with what every cause did."""
    if not page.explanations:
        return ""
    text = (
        "Causes of the weights of the leading experts, from the first listing of each to the end. The command"
        " stream-peer explain shows them for any expert, between any two moments, question by question."
    )
    shown = "".join(_explained(explanation) for explanation in page.explanations)
    return card("Causes of the weights", text, f'<div class="explanations">{shown}</div>', wide=True)


def _explained(explanation: WeightExplanation) -> str:
    decimals = decimals_of(explanation)
    first, *rest = explanation.sentences
    said = "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in rest)
    caption = f"What moved {explanation.expert}'s {KINDS[explanation.weight]}"
    rows = [_cause_row(cause, decimals) for cause in explanation.causes]
    ends = " to ".join(percent(stand.weight, decimals) for stand in (explanation.since, explanation.until))
    rows.append(("in all", points(explanation.difference, decimals), f"from {ends}"))
    note = f'<p class="note">{BEYOND}</p>' if goes_beyond(explanation) else ""
    table = html_table(caption, ("cause", "points", "what it is"), rows, kind="words")
    return (
        f"<section><h4>{escape(short(explanation.expert))}</h4><p>{escape(first)}</p>{said}"
        f"<details><summary>By cause</summary>{table}"
        f"{note}</details></section>"
    )


def _cause_row(cause: CauseOfMove, decimals: int) -> tuple[str, ...]:
    return escape(cause.name), points(cause.change, decimals), escape(cause.meaning)

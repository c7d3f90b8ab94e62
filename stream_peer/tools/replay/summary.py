"""What came of a replay, and when the service would have said it, in plain text."""

from collections.abc import Iterator, Sequence

from stream_peer.events.outputs import Certificate, WeightedExpert, Weights
from stream_peer.events.spelling import spelt
from stream_peer.events.times import to_iso
from stream_peer.tools.replay.file_events import FileOrder
from stream_peer.tools.replay.history import FeedHistory, ScoredQuestion, Scores, brier, by_mix, many, rounded
from stream_peer.tools.replay.replay import ReplayResult
from stream_peer.tools.replay.shadows import shadow_lines
from stream_peer.tools.report.track_record import Score, TrackRecord, track_record

SHOWN_EXPERTS = 10
SHOWN_REFUSED = 5
SHOWN_WARNINGS = 5
SHOWN_PLACES = 3
_ID_WIDTH = 22


def replay_summary(result: ReplayResult, experts: int = SHOWN_EXPERTS) -> str:
    """The summary: what was read, what was refused, and for each feed the weights and scores.

    Parameters
    ----------
    result : ReplayResult
        Of ``replay``.
    experts : int
        How many experts of each feed to list, those with the most weight first.
    """
    lines = [*_read(result)]
    for _, feed in sorted(result.history.feeds.items()):
        if feed.weights is not None:
            lines += ["", *_feed(feed, feed.weights, experts, result.variant(feed.weights.feed))]
    if not any(feed.weights for feed in result.history.feeds.values()):
        lines += ["", "No question closed with forecasts: there are no weights."]
    return "\n".join(map(spelt, lines))


def _read(result: ReplayResult) -> Iterator[str]:
    until = f" up to {to_iso(result.ended)}" if result.ended else ""
    yield f"{result.events:,} events{until}"
    refused = {reason: number for (kind, reason), number in sorted(result.counts.items()) if kind == "dead-letter"}
    if refused:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in refused.items())
        yield f"{sum(refused.values()):,} refused: {reasons}"
        for line in result.refused[:SHOWN_REFUSED]:
            yield f"  {line.place}: {line.message}"
    for order in result.orders:
        yield from _order(order)
    yield from _warned(result)
    unknown = result.counts["unknown-question", ""]
    if unknown:
        yield f"{many(unknown, 'resolution')} came before anything else of their question"


def _order(order: FileOrder) -> Iterator[str]:
    """How the lines of a file stood if not by time, and how many came after outcomes that they could have used."""
    if order.moved:
        yield f"{_stand(order.moved, 'line')} below one of a later time: all were put in order of time"
    if order.behind:
        what = "they come late, and no score uses them"
        if order.moved:
            what = "only their own times say that they came before it"
        where = _places(order.behind)
        yield f"{_stand(len(order.behind), 'forecast')} below the outcome of their question: {what} ({where})"


def _stand(number: int, thing: str) -> str:
    return f"{many(number, thing)} {'stands' if number == 1 else 'stand'}"


def _places(places: Sequence[str]) -> str:
    more = f" and {len(places) - SHOWN_PLACES:,} more" if len(places) > SHOWN_PLACES else ""
    return ", ".join(places[:SHOWN_PLACES]) + more


def _warned(result: ReplayResult) -> Iterator[str]:
    """Warnings by code, and the first of them; each says of which question or feed it speaks."""
    if not result.warned:
        return
    codes = ", ".join(f"{number:,} {code}" for code, number in sorted(result.warned.items()))
    yield f"{many(result.warned.total(), 'warning')}: {codes}"
    for warning in result.warnings[:SHOWN_WARNINGS]:
        whose = f"question {warning.question_id}" if warning.question_id else f"feed {warning.feed}"
        yield f"  {whose}: {warning.message}"


def _feed(feed: FeedHistory, weights: Weights, experts: int, variant: str) -> Iterator[str]:
    rate = weights.error_rate
    reasons = f" ({'; '.join(weights.status_reasons)})" if weights.status_reasons else ""
    measured = "" if rate.measured is None else f"; measured on outcomes {rate.measured:.3f}"
    certificate = weights.certificate
    yield f"feed {weights.feed}: {weights.status}{reasons}"
    if variant:
        yield _row("settings", variant)
    counted = f"({rounded(weights.questions)} counted, {rounded(weights.resolved)} resolved)"
    yield _row("questions", f"{len(feed.reference_answers):,} {counted}")
    yield _row("experts", f"{len(weights.experts):,}")
    estimate = f"{(rate.zero + rate.one) / 2:.3f} [{rate.low:.3f}, {rate.high:.3f}] {rate.status}{measured}"
    yield _row("error rate", estimate)
    yield _row("certificate", "none" if certificate is None else _regret(certificate, weights.questions))
    record = track_record(feed)
    yield from _scores(feed.scores())
    if record is not None:
        yield from _calibration(record)
    if weights.shadows:
        yield from shadow_lines(weights.shadows)
    yield from _experts(weights, record, experts)


def _scores(scores: Scores | None) -> Iterator[str]:
    if scores is None:
        yield _row("Brier score", "no outcome was revealed")
        return
    means = ", ".join(f"{name} {getattr(scores, name):.4f}" for name in ("mix", "stretched", "mean", "median"))
    yield _row("Brier score", f"{means} on {many(scores.questions, 'question')}; smaller is better")
    best = scores.best
    if best is not None:
        there = f"{best.loss:.4f} on {many(best.questions, 'question')}, where the mix had {best.mix_there:.4f}"
        yield _row("best expert", f"{best.expert_id} {there}")


def _calibration(record: TrackRecord) -> Iterator[str]:
    """The parts of the mix's Brier score, which is the first less the second and the third."""
    score = record.score("mix")
    if score.murphy is None:
        return
    parts = ", ".join(f"{name} {getattr(score.murphy, name):.4f}" for name in score.murphy._fields[1:])
    yield _row("calibration", f"mix {parts.replace('-0.0000', '0.0000')}; log score {score.log_score:.4f}")


def _experts(weights: Weights, record: TrackRecord | None, experts: int) -> Iterator[str]:
    """The experts with the most weight. Skill: 1 - Brier score/difficulty, the mean's score on the same questions."""
    ranked = by_mix(weights)
    if ranked and experts:
        heads = f"{'questions':>9}  {'coverage':>8}  {'peer loss':>9}  {'loss':>5}  {'difficulty':>10}  {'skill':>5}"
        yield f"  {'expert':<{_ID_WIDTH + 2}}    mix  select  {heads}"
    scores = [record.expert_score(expert.id) if record else None for expert in ranked[:experts]]
    yield from map(_expert, ranked, scores)
    if len(ranked) > experts:
        yield f"    and {len(ranked) - experts:,} more with {sum(e.mix for e in ranked[experts:]):.3f} of the mix"
    if any(score and (score.told_skill or 0.0) < 0.0 for score in scores):
        yield "    skill below 0: worse than the plain mean of all, which few single experts beat; mix compares experts"


def _expert(expert: WeightedExpert, score: Score | None) -> str:
    name = expert.id if len(expert.id) <= _ID_WIDTH else expert.id[: _ID_WIDTH - 1] + "…"
    difficulty, skill = (score.skill.difficulty, score.told_skill) if score else (None, None)
    return (
        f"    {name:<{_ID_WIDTH}}  {expert.mix:.3f}   {expert.select:.3f}  {rounded(expert.questions):>9}"
        f"  {expert.coverage:>8.2f}  {_number(expert.peer_loss):>9}  {_number(expert.outcome_loss):>5}"
        f"  {_number(difficulty):>10}  {'-' if skill is None else f'{round(skill, 2) + 0.0:.2f}':>5}"
    )


def _regret(certificate: Certificate, questions: float) -> str:
    share = certificate.a_question(questions)
    if share is None:
        return "none yet: the bound is above 1 a question, the largest loss"
    return f"regret at most {certificate.regret_at_most:,.1f} in all, {share:.3f} a question"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _row(name: str, text: str) -> str:
    return f"  {name:<12} {text}"


SHOWN_MOMENTS = 5
SHOWN_CHANGES = 6


def told_when(feed: FeedHistory) -> Iterator[str]:
    """The lines of a feed."""
    moments = [weights for weights in feed.moments if weights.experts]
    if not moments:
        return
    yield f"feed {feed.feed}: what would have been known when"
    for place in _spread(len(moments), SHOWN_MOMENTS):
        weights = moments[place]
        leaders = ", ".join(f"{one.id} {one.mix:.2f}" for one in by_mix(weights)[:3])
        told = f"{_questions(weights.questions)}, {rounded(weights.resolved)} resolved"
        yield f"  {weights.at[:10]}  {told}: {weights.status}; mix {leaders}"
    for change in feed.trust[1 : SHOWN_CHANGES + 1]:
        why = f" ({'; '.join(change.reasons)})" if change.reasons else ""
        yield f"  {change.at[:10]}  trust became {change.status}{why}"
    if len(feed.trust) > SHOWN_CHANGES + 1:
        yield f"  and {many(len(feed.trust) - SHOWN_CHANGES - 1, 'more change')} of trust"
    resolved = feed.resolved()
    if resolved:
        yield f"  {_ahead(resolved)}"


def _questions(amount: float) -> str:
    return "1 question" if amount == 1 else f"{rounded(amount)} questions"


def _spread(number: int, most: int) -> list[int]:
    """Places from the first to the last, evenly."""
    if number <= most:
        return list(range(number))
    return sorted({round(step * (number - 1) / (most - 1)) for step in range(most)})


def _ahead(resolved: Sequence[ScoredQuestion]) -> str:
    """Since when the mix was ahead of the plain mean, by their summed Brier scores up to each question."""
    gain, behind = 0.0, 0
    for number, one in enumerate(resolved, 1):
        gain += brier(one.forecast.mean, one.outcome) - brier(one.forecast.mix, one.outcome)
        if gain <= 0.0:
            behind = number
    if behind == len(resolved):
        return f"the mix was not ahead of the plain mean after {many(behind, 'resolved question')}"
    first = resolved[behind]
    return f"the mix was ahead of the plain mean from {first.question} on, number {behind + 1:,} of {len(resolved):,}"

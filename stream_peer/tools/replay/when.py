"""When the service would have said what: weights, changes of trust, and since when the mix was ahead."""

from collections.abc import Iterator, Sequence

from stream_peer.tools.replay.history import FeedHistory, ScoredQuestion, brier, by_mix, many, rounded

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

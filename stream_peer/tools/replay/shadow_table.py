"""How shadows did beside the live mixers, in plain text."""

from collections.abc import Iterator, Mapping, Sequence

from stream_peer.events.outputs import ShadowScores
from stream_peer.events.spelling import spelt
from stream_peer.tools.replay.history import rounded

_NAME_WIDTH = 40
_WHAT = "stretched forecasts of all rounds of the same resolved questions, beside the live ones; smaller is better"


def shadow_table(by_feed: Mapping[str, Sequence[ShadowScores]]) -> str:
    """A table for each feed, of the shadows that a replay folded beside it."""
    lines = [line for feed, shadows in sorted(by_feed.items()) for line in ("", f"feed {feed}", *shadow_lines(shadows))]
    return "\n".join(map(spelt, lines[1:])) if lines else "No feed was scored: there is nothing to compare."


def shadow_lines(shadows: Sequence[ShadowScores]) -> Iterator[str]:
    """The lines of a feed's table.

    Examples
    --------
    >>> scores = ShadowScores(
    ...     name="eager",
    ...     questions=40.0,
    ...     brier=0.15,
    ...     live_brier=0.16,
    ...     log_score=0.47,
    ...     live_log_score=0.48,
    ...     regret=-0.4,
    ...     mix_brier=0.16,
    ...     live_mix_brier=0.17,
    ... )
    >>> for line in list(shadow_lines([scores]))[1:]:
    ...     print(line)
        name     questions     Brier    (live)  log score    (live)    regret
        eager           40    0.1500  (0.1600)     0.4700  (0.4800)    -0.400
    """
    width = min(max(4, *(len(shadow.name) for shadow in shadows)), _NAME_WIDTH) if shadows else 0
    yield f"  shadows      {_WHAT}"
    head = f"{'questions':>9}  {'Brier':>8}  {'(live)':>8}  {'log score':>9}  {'(live)':>8}  {'regret':>8}"
    yield f"    {'name':<{width}}    {head}"
    for shadow in shadows:
        yield f"    {shadow.name:<{width}}    {_scores(shadow)}"


def _scores(shadow: ShadowScores) -> str:
    return (
        f"{rounded(shadow.questions):>9}  {_number(shadow.brier):>8}  {_beside(shadow.live_brier):>8}"
        f"  {_number(shadow.log_score):>9}  {_beside(shadow.live_log_score):>8}  {shadow.regret:>8.3f}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _beside(value: float | None) -> str:
    return "-" if value is None else f"({value:.4f})"

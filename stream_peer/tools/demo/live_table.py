"""What a person sees while the demo runs: a live table on a terminal, a line now and then elsewhere."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stream_peer.events.outputs import WeightedExpert, Weights
from stream_peer.events.spelling import spelt
from stream_peer.tools.replay.history import by_mix

_TOP = 8
_WATCHED = ("random", "copy-of-")
_LINE_EVERY = 5.0
_BAR = 24
_NUMBERS = 80
_LEGEND = (
    "mix: share in the combined forecast. select: chance of being the one to follow. Losses: smaller is better. "
    "Magenta: two copies and a random expert, planted."
)
_STATE_STYLES = {"ok": "bold green", "warming-up": "yellow", "low-evidence": "yellow"}


class Glance(NamedTuple):
    """Everything that is shown, at one moment."""

    phase: str
    sent: int
    total: int
    events_per_second: float
    lag: Mapping[str, int]
    questions: int
    dead_letters: int
    weights: Weights | None
    resolved: int
    mix_loss: float | None
    mean_loss: float | None


class LiveTable:
    """Context manager; ``show`` redraws the table, or prints a line when nothing was printed for a while.

    Parameters
    ----------
    console : Console
        Where to draw. The table needs a terminal; anything else gets plain lines.
    clock : callable
        Seconds, from any start.
    """

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._printed = float("-inf")
        self._phase = ""
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, glance: Glance) -> None:
        """Show this moment."""
        if self._live is not None:
            self._live.update(live_table(glance, self._console.width), refresh=True)
            return
        now = self._clock()
        if glance.phase != self._phase or now - self._printed >= _LINE_EVERY:
            self._phase, self._printed = glance.phase, now
            self._console.print(Text(status_line(glance)), soft_wrap=True)


def status_line(glance: Glance) -> str:
    """One moment as one line."""
    if not glance.total:
        return f"{glance.phase} …"
    parts = [
        f"{glance.phase}: {glance.sent:,} of {glance.total:,} events",
        f"{glance.events_per_second:,.0f}/s",
        f"lag {sum(glance.lag.values()):,}",
        f"{glance.questions:,} questions scored",
    ]
    weights = glance.weights
    if weights is not None:
        rate = weights.error_rate
        parts.append(f"{weights.status}, error rate {(rate.zero + rate.one) / 2:.3f} [{rate.low:.3f}, {rate.high:.3f}]")
        leaders = ", ".join(f"{spelt(expert.id)} {expert.mix:.3f}" for expert in by_mix(weights)[:3])
        parts.append(f"mix {leaders or '-'}")
    if glance.mix_loss is not None and glance.mean_loss is not None:
        parts.append(
            f"loss of mix {glance.mix_loss:.3f}, of mean {glance.mean_loss:.3f} on {glance.resolved:,} resolved"
        )
    return "; ".join(parts)


def live_table(glance: Glance, width: int = 100) -> RenderableType:
    """One moment as a heading, a progress bar and the experts; of a service that is not there yet, the phase."""
    if not glance.total:
        return Text(f"\n{glance.phase} …")
    share = Table.grid()
    share.add_row(ProgressBar(total=max(glance.total, 1), completed=glance.sent, width=min(width, 100)))
    return Group(
        Text(""), _heading(glance), _standing(glance), share, *_experts(glance.weights, width), _footing(glance)
    )


def _heading(glance: Glance) -> Text:
    flow = f"{glance.sent:,} of {glance.total:,} events, {glance.events_per_second:,.0f}/s, "
    lag = ", ".join(f"{topic} {records:,}" for topic, records in sorted(glance.lag.items()) if records) or "none"
    return Text.assemble((glance.phase, "bold"), "  ", (flow + f"lag: {lag}", "dim"))


def _standing(glance: Glance) -> Text:
    weights = glance.weights
    if weights is None:
        return Text("Waiting for the first weights …", style="dim")
    rate = weights.error_rate
    measured = "" if rate.measured is None else f", outcomes showed {rate.measured:.1%}"
    certificate = "none yet"
    bound = weights.certificate
    share = bound.a_question(weights.questions) if bound else None
    if bound is not None and share is not None:
        certificate = f"≤ {bound.regret_at_most:,.1f} in all, {share:.3f} a question"
    return Text.assemble(
        "trust ",
        (weights.status, _STATE_STYLES.get(weights.status, "bold red")),
        f"   wrong reference answers {(rate.zero + rate.one) / 2:.1%} [{rate.low:.1%}, {rate.high:.1%}]{measured}",
        f"\ncertified regret {certificate}",
    )


def _footing(glance: Glance) -> Text:
    counts = f"{glance.questions:,} questions scored, {glance.dead_letters} dead letters"
    if glance.mix_loss is None or glance.mean_loss is None:
        return Text(counts + ", no outcome revealed yet", style="dim")
    won = glance.mix_loss < glance.mean_loss
    return Text.assemble(
        (f"{counts}, {glance.resolved:,} resolved: ", "dim"),
        (f"mix lost {glance.mix_loss:.3f}", "bold green" if won else "bold"),
        (f" a question, the plain mean {glance.mean_loss:.3f}", "dim"),
    )


def _experts(weights: Weights | None, width: int) -> list[RenderableType]:
    """The experts with the most weight, and those that a visitor should keep an eye on; and how to read that."""
    if weights is None:
        return []
    found = Table(expand=False, box=None, padding=(0, 2, 0, 0), header_style="dim")
    found.add_column("expert", no_wrap=True, max_width=24)
    found.add_column("mix", justify="right")
    longest = min(_BAR, width - _NUMBERS)
    if longest > 0:
        found.add_column("")
    for name in ("select", "questions", "peer loss", "outcome loss"):
        found.add_column(name, justify="right")
    ranked = by_mix(weights)
    shown = ranked[:_TOP] + [expert for expert in ranked[_TOP:] if expert.id.startswith(_WATCHED)]
    widest = max((expert.mix for expert in shown), default=1.0) or 1.0
    for place, expert in enumerate(shown):
        bar = [Text("━" * max(1, round(longest * expert.mix / widest)), style="cyan")] if longest > 0 else []
        watched = expert.id.startswith(_WATCHED)
        found.add_row(*_cells(expert, bar), style="magenta" if watched else None, end_section=place == _TOP - 1)
    return [found, Text(_LEGEND, style="dim")]


def _cells(expert: WeightedExpert, bar: list[Text]) -> list[RenderableType]:
    known = ["-" if loss is None else f"{loss:.3f}" for loss in (expert.peer_loss, expert.outcome_loss)]
    name = spelt(expert.id)
    return [
        Text(name if len(name) <= 24 else name[:23] + "…"),
        f"{expert.mix:.3f}",
        *bar,
        f"{expert.select:.3f}",
        f"{expert.questions:,.0f}",
        *known,
    ]

"""What may be held at most, as it follows from the open set and the limits that are set; and whether it was so."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.lives import Lives
from benchmarks.soak_log import Held
from stream_peer.settings.feed.model import FeedSettings

LIMIT_TIMES_OPEN = 150
"""``ledger_max`` of all feeds together, for each question that may be open."""

MEMORY = Held(live=5_000, stubs=700, entries=1_600, names=700)
"""Bytes of memory that one of them may take: about one and a half times what was measured, see docs/sizing.md."""
MEMORY_FIXED = 24_000_000
STATE = Held(live=1_000, stubs=140, entries=850, names=120)
"""Bytes of the changelogs after compaction that one of them may take, the version before included."""
STATE_FIXED = 600_000
"""The sums of the feeds' experts, twice, and the heads."""
GROWTH = 1.08
"""How much more may be held in the last third of what is judged than in the first."""
RSS_GROWTH = 1.25
"""The same of memory above the start: tables of names grow by doubling, and after a restart they begin small."""
BLOCKS_NOISE = 10_000
"""Objects in memory: as many as the names that a partition remembers the homes of."""
GROWTH_FIXED = Held(live=10, stubs=30, entries=30, names=30)
RSS_NOISE, STATE_NOISE = 4_000_000, 100_000
_GROWTHS = (("state", GROWTH, STATE_NOISE), ("rss", RSS_GROWTH, RSS_NOISE), ("blocks", GROWTH, BLOCKS_NOISE))

EXPERTS = 6
"""Of a question; with more of them everything but names may be larger."""


class Sample(NamedTuple):
    """What was found at one moment."""

    number: int
    seconds: float
    rss: int
    state: int
    held: Held
    events: int
    blocks: int


class Bounds(NamedTuple):
    """The most of everything."""

    held: Held
    memory: int
    state: int
    warm_up: int

    def lines(self, lives: Lives) -> Iterator[str]:
        """What is allowed, for people."""
        times = ", ".join(f"{name} {count / lives.most_open:g}" for name, count in self.held._asdict().items())
        yield f"at most {lives.most_open:,} questions open; of each open one the settings allow: {times}"
        each = self.memory / lives.most_open / 1e3
        yield (
            f"allowed: memory {self.memory / 1e6:,.0f} MB above the start ({each:,.0f} kB an open question),"
            f" state {self.state / 1e6:,.1f} MB; level after {self.warm_up:,} questions"
        )


def bounds_of(lives: Lives, settings: FeedSettings, feeds: int) -> Bounds:
    """What the settings allow."""
    longest, most_open = lives.longest, lives.most_open
    ledger = most_open * (settings.ledger_for + 12 * longest) // longest
    most = settings.ledger_max * feeds
    held = Held(
        live=most_open * (settings.history_for + 2 * longest) // longest,
        stubs=ledger,
        entries=min(most, ledger),
        names=most,
    )
    more = max(1.0, lives.experts / EXPERTS)
    memory = sum(size * count for size, count in zip(MEMORY, held, strict=True))
    state = sum(size * count for size, count in zip(STATE, held, strict=True))
    return Bounds(held, MEMORY_FIXED + int(more * memory), STATE_FIXED + int(more * state), ledger + most)


def faults(samples: Sequence[Sample], bounds: Bounds, base: int) -> list[str]:
    """What was more than allowed, or still grew; ``base``: memory at the start."""
    found = []
    for name in Held._fields:
        most, allowed = max(getattr(s.held, name) for s in samples), getattr(bounds.held, name)
        if most > allowed:
            found.append(f"{most:,} {name}, {allowed:,} allowed")
    most_memory, most_state = max(s.rss for s in samples) - base, max(s.state for s in samples)
    if most_memory > bounds.memory:
        found.append(f"memory {most_memory / 1e6:.1f} MB above the start, {bounds.memory / 1e6:.1f} allowed")
    if most_state > bounds.state:
        found.append(f"state {most_state / 1e6:.2f} MB, {bounds.state / 1e6:.2f} allowed")
    level = [s._replace(rss=s.rss - base) for s in samples if s.number > bounds.warm_up]
    return found + list(_growth(level))


def _growth(level: Sequence[Sample]) -> Iterator[str]:
    """What still grew when everything should have been level; memory is that above the start."""
    third = len(level) // 3
    if not third:
        yield "too few questions to see whether anything grows"
        return
    first, last = level[:third], level[-third:]
    for name, growth, noise in _GROWTHS:
        before, after = _mean(getattr(s, name) for s in first), _mean(getattr(s, name) for s in last)
        if after > before * growth + noise:
            yield f"{name} grew from {before:,.0f} to {after:,.0f}"
    for name, noise in GROWTH_FIXED._asdict().items():
        before, after = _mean(getattr(s.held, name) for s in first), _mean(getattr(s.held, name) for s in last)
        if after > before * GROWTH + noise:
            yield f"{name} grew from {before:,.0f} to {after:,.0f}"


def _mean(values: Iterator[float]) -> float:
    found = list(values)
    return sum(found) / len(found)

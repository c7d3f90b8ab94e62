"""Microseconds for one round: the weights it is scored under, its facts, its contribution, its place in the sums.

``python benchmarks/numerics.py [--json]``: for 50 and for 10,000 experts, in a feed that has scored and resolved some;
as built in, with the vote rule ``own-median`` in force, with the log loss, and with half of the experts in teams of
five. ``a round`` is the sum of the first three: what a round costs apart from writing it to the ledger and the sums.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from stream_peer.engine.contributions import contribution_of
from stream_peer.engine.facts import Facts, score
from stream_peer.engine.feed_state import Feed
from stream_peer.engine.ledger import Entry
from stream_peer.engine.sums import IndexArray
from stream_peer.events.feed_settings import FeedSettings
from stream_peer.numerics.losses import FloatArray

SIZES = (50, 10_000)
KINDS = {
    "as built in": FeedSettings(),
    "own-median": FeedSettings(vote_rule="own-median"),
    "log loss": FeedSettings(loss="log"),
    "in teams": FeedSettings(),
}
OF_A_ROUND = ("weights", "facts", "contribution")
ROUNDS_BEFORE = 40
SECONDS_EACH = 0.5


def microseconds(call: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """Median time of a call; of what comes before it each time, nothing is counted."""
    taken: list[float] = []
    end = time.perf_counter() + SECONDS_EACH
    while time.perf_counter() < end or len(taken) < 5:
        before()
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)) * 1e6


def scored(feed: Feed, number: int, experts: IndexArray, forecasts: FloatArray) -> Facts:
    """Facts of a question's round."""
    under = feed.circumstances(experts, f"question-{number}", number)
    return score(number, experts, forecasts, under, feed.method)


def times(settings: FeedSettings, n_experts: int, *, in_teams: bool = False) -> dict[str, float]:
    """Times of the steps of one round of so many experts."""
    random = np.random.default_rng(1)
    feed = Feed("benchmark", settings, "", b"")
    experts = feed.places([f"expert-{number:05d}" for number in range(n_experts)])
    for number in range(n_experts // 2 if in_teams else 0):
        feed.roster.put_in_team(f"expert-{number:05d}", f"team-{number // 5}")
    for number in range(ROUNDS_BEFORE):
        forecasts = np.clip(random.normal(0.5 + 0.2 * random.choice((-1, 1)), 0.2, n_experts), 0.0, 1.0)
        facts = scored(feed, number, experts, forecasts)
        feed.put_in(contribution_of(facts.alone(), 1 if number % 4 == 0 else "open", 1.0, feed.method), Entry())
    forecasts = random.random(n_experts)
    under = feed.circumstances(experts, "question", 0)
    facts = score(0, experts, forecasts, under, feed.method)
    part = contribution_of(facts.alone(), "open", 1.0, feed.method)
    weights = microseconds(
        lambda: feed.circumstances(experts, "question", 0),
        before=lambda: feed.put_in(part, Entry()),  # so that nothing is read from what was kept
    )
    return {
        "weights": weights,
        "facts": microseconds(lambda: score(0, experts, forecasts, under, feed.method)),
        "contribution": microseconds(lambda: contribution_of(facts.alone(), "open", 1.0, feed.method)),
        "sums": microseconds(lambda: feed.sums.add(part)),
        "stored form": microseconds(facts.pack),
    }


def main() -> None:
    """Print a table, or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for kind, settings in KINDS.items():
        for size in SIZES:
            parts = times(settings, size, in_teams=kind == "in teams")
            parts["a round"] = sum(parts[name] for name in OF_A_ROUND)
            found[f"{kind}, {size:,}"] = {name: round(value, 1) for name, value in parts.items()}
    if options.json:
        print(json.dumps(found))
        return
    names = [*OF_A_ROUND, "a round", "sums", "stored form"]
    print(f"{'microseconds':<22}" + "".join(f"{name:>14}" for name in names))
    for title, parts in found.items():
        print(f"{title:<22}" + "".join(f"{parts[name]:>14,.1f}" for name in names))


if __name__ == "__main__":
    main()

"""Microseconds for one round: the weights it is scored under, its facts, its contribution, its place in the sums.

``python benchmarks/numerics.py [--json]``: for 50 and for 10,000 experts, in a feed that has scored and resolved some.
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
from stream_peer.engine.facts import score
from stream_peer.engine.feed_state import Feed
from stream_peer.events.feed_settings import FeedSettings

SIZES = (50, 10_000)
ROUNDS_BEFORE = 40
SECONDS_EACH = 0.5


def microseconds(call: Callable[[], object]) -> float:
    """Median time of a call."""
    taken: list[float] = []
    end = time.perf_counter() + SECONDS_EACH
    while time.perf_counter() < end or len(taken) < 5:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)) * 1e6


def times(n_experts: int) -> dict[str, float]:
    """Times of the steps of one round of so many experts."""
    random = np.random.default_rng(1)
    feed = Feed("benchmark", FeedSettings(), "", b"")
    experts = feed.places([f"expert-{number:05d}" for number in range(n_experts)])
    for number in range(ROUNDS_BEFORE):
        forecasts = np.clip(random.normal(0.5 + 0.2 * random.choice((-1, 1)), 0.2, n_experts), 0.0, 1.0)
        facts = score(
            number, experts, forecasts, feed.circumstances(experts, f"question-{number}", number), feed.method
        )
        feed.put_in(contribution_of(facts.alone(), 1 if number % 4 == 0 else "open", 1.0, feed.method))
    forecasts = random.random(n_experts)
    under = feed.circumstances(experts, "question", 0)
    facts = score(0, experts, forecasts, under, feed.method)
    part = contribution_of(facts.alone(), "open", 1.0, feed.method)

    def weights() -> object:
        feed.put_in(part)  # so that nothing is read from what was kept
        feed.sums.subtract(part)
        return feed.circumstances(experts, "question", 0)

    return {
        "weights": microseconds(weights),
        "facts": microseconds(lambda: score(0, experts, forecasts, under, feed.method)),
        "contribution": microseconds(lambda: contribution_of(facts.alone(), "open", 1.0, feed.method)),
        "sums": microseconds(lambda: feed.sums.add(part)),
        "stored_form": microseconds(facts.pack),
    }


def main() -> None:
    """Print a table, or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args()
    found = {size: times(size) for size in SIZES}
    if options.json:
        print(
            json.dumps(
                {str(size): {name: round(value, 1) for name, value in all_.items()} for size, all_ in found.items()}
            )
        )
        return
    print(f"{'microseconds':<14}" + "".join(f"{size:>12,}" for size in SIZES))
    for name in next(iter(found.values())):
        print(f"{name:<14}" + "".join(f"{found[size][name]:>12,.1f}" for size in SIZES))
    print(f"{'a round':<14}" + "".join(f"{sum(found[size].values()):>12,.1f}" for size in SIZES))


if __name__ == "__main__":
    main()

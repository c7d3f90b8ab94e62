"""Microseconds for one round: the weights it is scored under, its facts, its contribution, its place in the sums.

``python benchmarks/numerics.py [--json] [--shadows]``: for 50 and for 10,000 experts, in a feed that has scored and
resolved some; as built in, with the vote rule ``own-median`` in force, with the log loss, and with half of the experts
in teams of five. ``a round`` is the sum of the first three: what a round costs apart from writing it to the ledger and
the sums.

``--shadows``: what shadows cost instead, each other than the live mixers in every setting, as a share of a round of 50
experts; and of an outcome, which takes a contribution out, puts another one in, and has the mixers' shares read anew.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from stream_peer.events.feed_log import Verdict
from stream_peer.feeds.columns import FEED
from stream_peer.feeds.contributions import contribution_of
from stream_peer.feeds.facts import Facts, score
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read, scoring_inputs
from stream_peer.feeds.ledger import Entry
from stream_peer.numerics.arguments import FloatArray, IndexArray
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings

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
SHADOWS = (0, 1, 8)
SECONDS_OF_SHADOWS = 6.0
MIXERS = FEED.at("peer_peer")
"""A column that the mixers' shares are read from."""
MOST_COSTLY = 0.15
"""Of a round: what a shadow may cost."""


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
    under = scoring_inputs(feed, read(feed), experts, f"question-{number}", number)
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
        feed.put_in(contribution_of((facts,), Entry(evidence=1 if number % 4 == 0 else "open"), feed.method), Entry())
    forecasts = random.random(n_experts)
    under = scoring_inputs(feed, read(feed), experts, "question", 0)
    facts = score(0, experts, forecasts, under, feed.method)
    part = contribution_of((facts,), Entry(), feed.method)
    weights = microseconds(
        lambda: scoring_inputs(feed, read(feed), experts, "question", 0),
        before=lambda: feed.put_in(part, Entry()),  # so that nothing is read from what was kept
    )
    return {
        "weights": weights,
        "facts": microseconds(lambda: score(0, experts, forecasts, under, feed.method)),
        "contribution": microseconds(lambda: contribution_of((facts,), Entry(), feed.method)),
        "sums": microseconds(lambda: feed.buckets.sums.add(part)),
        "stored form": microseconds(facts.pack),
    }


def with_shadows(count: int) -> FeedSettings:
    """So many shadows, none of which shares a setting with the live mixers or with another one."""
    mixers = [
        {
            "prior_mean": 0.15 + 0.01 * number,
            "prior_peer": 0.6 - 0.01 * number,
            "peer_rate": 20.0 + number,
            "truth_rate": 25.0 + number,
            "uniform_share": 0.4 + 0.01 * number,
            "nominal_error_rate": 0.2 + 0.01 * number,
        }
        for number in range(count)
    ]
    shadows = [{"name": f"shadow-{number}", "mixer": mixer} for number, mixer in enumerate(mixers)]
    return load_document({"defaults": {"shadows": shadows}}).default


class Beside:
    """A feed of 50 experts with some shadows, of which a round is scored again and again."""

    def __init__(self, count: int) -> None:
        random = np.random.default_rng(1)
        self.feed = Feed("benchmark", with_shadows(count), "", b"")
        self.experts = self.feed.places([f"expert-{number:05d}" for number in range(SIZES[0])])
        self.forecasts = random.random(SIZES[0])
        for number in range(ROUNDS_BEFORE):
            forecasts = np.clip(random.normal(0.5 + 0.2 * random.choice((-1, 1)), 0.2, SIZES[0]), 0.0, 1.0)
            facts = scored(self.feed, number, self.experts, forecasts)
            self.news(facts, 1 if number % 4 == 0 else "open")

    def news(self, facts: Facts, evidence: Verdict) -> None:
        """Something to read the sums anew for."""
        self.feed.put_in(contribution_of((facts,), Entry(evidence=evidence), self.feed.method), Entry())

    def round(self) -> float:
        """Seconds for a round: what it is scored under, its facts, its contribution."""
        start = time.perf_counter()
        facts = scored(self.feed, 0, self.experts, self.forecasts)
        part = contribution_of((facts,), Entry(), self.feed.method)
        taken = time.perf_counter() - start
        self.feed.put_in(part, Entry())
        return taken

    def outcome(self) -> float:
        """Seconds for an outcome: the contribution without it and with it, and the mixers' shares."""
        facts = scored(self.feed, 0, self.experts, self.forecasts)
        self.feed.buckets.sums.feed[MIXERS] += 1
        self.feed.buckets.sums.version += 1  # what was read before is stale
        columns = read(self.feed).learnt(self.experts)
        start = time.perf_counter()
        contribution_of((facts,), Entry(), self.feed.method)
        contribution_of((facts,), Entry(evidence=1), self.feed.method)
        self.feed.buckets.sums.version += 1
        live = read(self.feed).mixing
        of_shares = time.perf_counter()
        self.feed.shadows.read(self.feed.buckets.sums.feed, columns, live)
        news = time.perf_counter()
        self.feed.shadows.read(self.feed.buckets.sums.feed, columns, live)
        return of_shares - start + (news - of_shares) - (time.perf_counter() - news)


def shadow_costs() -> dict[str, dict[str, float]]:
    """Medians without shadows and with some, taken in turns: microseconds, and the share that each costs."""
    found: dict[str, dict[str, float]] = {}
    for what, step in (("a round", Beside.round), ("an outcome", Beside.outcome)):
        feeds = {count: Beside(count) for count in SHADOWS}
        taken: dict[int, list[float]] = {count: [] for count in SHADOWS}
        end = time.perf_counter() + SECONDS_OF_SHADOWS
        while time.perf_counter() < end:
            for count, beside in feeds.items():
                taken[count].append(step(beside))
        medians = {count: float(np.median(seconds)) * 1e6 for count, seconds in taken.items()}
        found[what] = {f"{count} shadows": round(median, 1) for count, median in medians.items()}
        for count in SHADOWS[1:]:
            share = (medians[count] - medians[0]) / count / medians[0]
            found[what][f"each of {count}"] = round(share, 3)
    return found


def print_shadow_costs(found: dict[str, dict[str, float]]) -> None:
    """A table: microseconds of a round, and what each shadow costs of it."""
    names = next(iter(found.values()))
    print(f"{'':<18}" + "".join(f"{name:>12}" for name in names))
    for what, values in found.items():
        shown = [f"{value:.1%}" if name.startswith("each") else f"{value:.1f}" for name, value in values.items()]
        print(f"{what:<18}" + "".join(f"{value:>12}" for value in shown))
    dearest = max(value for name, value in found["a round"].items() if name.startswith("each"))
    print(f"a shadow costs at most {dearest:.1%} of a round; {MOST_COSTLY:.0%} are allowed")


def main() -> None:
    """Print a table, or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--shadows", action="store_true", help="what shadows cost, instead")
    options = parser.parse_args()
    if options.shadows:
        costs = shadow_costs()
        print_shadow_costs(costs) if not options.json else print(json.dumps(costs))
        return
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

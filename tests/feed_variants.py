"""Every variant of the mathematics that a replay can choose, each at least once; and a crowd to try them on."""

from typing import Any

import numpy as np

from stream_peer.events.feed_log import OutcomeRevealed, Round, RoundWithdrawn
from tests.feed_histories import outcome, round_of

Event = Round | RoundWithdrawn | OutcomeRevealed
Settings = dict[str, Any]


def variant(**method: Any) -> Settings:
    return {"method": method}


GROUPS = {"against": "group-a"}
DRAWN = {"against": "other-group", "groups": "redrawn"}
KNOWN = {"error_rate": "known", "known_zero": 0.3, "known_one": 0.1}

REFERENCES: dict[str, Settings] = {
    "reference-weighted": variant(reference="weighted"),
    "reference-mean": variant(reference="mean"),
    "reference-product": variant(reference="product"),
    "against-everybody": variant(against="everybody", error_rate="outcomes"),
    "against-everybody-by-product": variant(reference="product", against="everybody", **KNOWN),
    "flipped": variant(flip_probability=0.2),
}
RATES: dict[str, Settings] = {
    "class-moments": variant(error_rate="class-moments"),
    "two-groups": variant(**GROUPS, error_rate="two-groups"),
    "two-groups-drawn": variant(**DRAWN, error_rate="two-groups"),
    "two-groups-flipped": variant(**GROUPS, error_rate="two-groups", flip_probability=0.2),
    "equal-groups": variant(**DRAWN, error_rate="equal-groups", reference="mean"),
    "three-references": variant(**DRAWN, error_rate="three-references"),
    "three-class-references": variant(**GROUPS, error_rate="three-class-references"),
    "outcomes": variant(error_rate="outcomes"),
    "known-rates": variant(**KNOWN),
}
LEARNERS: dict[str, Settings] = {
    "hedge": variant(learner="hedge", learning_rate=0.3),
    "any-time-hedge": variant(learner="any-time-hedge"),
    "ada-hedge": variant(learner="ada-hedge"),
    "follow-the-leader": variant(learner="follow-the-leader"),
    "top-committee": variant(learner="top-committee", committee=3),
}
OF_THE_PATH: dict[str, Settings] = {
    "fixed-share": variant(learner="fixed-share"),
    "fixed-share-at-a-rate": variant(learner="fixed-share", learning_rate=2.0, share=0.1, mixer="select"),
    "gradient-hedge": variant(mixer="gradient-hedge"),
    "gradient-normal-hedge": variant(mixer="gradient-normal-hedge"),
    "mixer-outcomes": variant(mixer="outcomes"),
    "mixer-hybrid": variant(mixer="hybrid"),
    "mixer-five": variant(mixer="five"),
}
"""Which go by what they said before, and not by the sums alone."""

OTHERS: dict[str, Settings] = {
    "frozen": variant(pricing="frozen"),
    "frozen-own-median": {**variant(pricing="frozen"), "vote_rule": "own-median"},
    "mixer-select": variant(mixer="select"),
    "spherical": {"loss": "spherical"},
    "paper": {"preset": "paper"},
    "all-at-once": {
        "loss": "log",
        **variant(**DRAWN, error_rate="equal-groups", learner="ada-hedge", pricing="frozen", mixer="select"),
    },
}

OF_THE_SUMS = {**REFERENCES, **RATES, **LEARNERS, **OTHERS}
VARIANTS = {**OF_THE_SUMS, **OF_THE_PATH}

NOT_RECORDED = {
    "against-everybody-by-product",
    "two-groups-flipped",
    "outcomes",
    "fixed-share-at-a-rate",
    "all-at-once",
}
"""Those of which there is no golden life."""


def crowd(questions: int, share_of_ones: float = 0.3, seed: int = 1) -> list[Event]:
    """Ten experts who err independently and miss one question in five; some outcomes, some of them wrong at first."""
    generator = np.random.default_rng(seed)
    events: list[Event] = []
    for number in range(questions):
        y = int(generator.random() < share_of_ones)
        right = generator.random(10) < np.linspace(0.6, 0.85, 10)
        sharp = generator.uniform(0.05, 0.45, 10)
        forecasts = {f"e{k}": 0.5 + sharp[k] * (1 if right[k] == (y == 1) else -1) for k in range(10)}
        there = {e: float(p) for e, p in forecasts.items() if generator.random() < 0.8}
        events += [round_of(f"q{number}", there, boundary=b) for b in range(1, 2 + number % 2)]
        if number % 5 == 0:
            events.append(outcome(f"q{number}", 1 if (y == 1) != (number % 15 == 0) else 0))
        if number % 15 == 10:
            events.append(outcome(f"q{number - 10}", "open" if number % 2 else "annulled"))
    return events

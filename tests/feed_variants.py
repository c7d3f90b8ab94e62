"""Settings for tests: every variant of the mathematics that a replay can choose, each at least once."""

from typing import Any

Settings = dict[str, Any]


def variant(**method: Any) -> Settings:
    return {"method": method}


GROUPS = {"against": "group-a"}
DRAWN = {"against": "other-group", "groups": "redrawn"}
KNOWN = {"error_rate": "known", "known_zero": 0.3, "known_one": 0.1}

REFERENCES: dict[str, Settings] = {
    "weighted": variant(reference="weighted"),
    "mean": variant(reference="mean"),
    "product": variant(reference="product"),
    "everybody": variant(against="everybody", error_rate="outcomes"),
    "everybody, by product": variant(reference="product", against="everybody", **KNOWN),
    "flipped": variant(flip_probability=0.2),
}
RATES: dict[str, Settings] = {
    "class-moments": variant(error_rate="class-moments"),
    "two-groups": variant(**GROUPS, error_rate="two-groups"),
    "two-groups, drawn": variant(**DRAWN, error_rate="two-groups"),
    "two-groups, flipped": variant(**GROUPS, error_rate="two-groups", flip_probability=0.2),
    "equal-groups": variant(**DRAWN, error_rate="equal-groups", reference="mean"),
    "three-references": variant(**DRAWN, error_rate="three-references"),
    "three-class-references": variant(**GROUPS, error_rate="three-class-references"),
    "outcomes": variant(error_rate="outcomes"),
    "known": variant(**KNOWN),
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
    "fixed-share, at a rate": variant(learner="fixed-share", learning_rate=2.0, share=0.1, mixer="select"),
    "gradient-hedge": variant(mixer="gradient-hedge"),
    "gradient-normal-hedge": variant(mixer="gradient-normal-hedge"),
    "outcome mixer": variant(mixer="outcomes"),
    "hybrid": variant(mixer="hybrid"),
    "five": variant(mixer="five"),
}
"""Which go by what they said before, and not by the sums alone."""

OTHERS: dict[str, Settings] = {
    "frozen": variant(pricing="frozen"),
    "frozen, own medians": {**variant(pricing="frozen"), "vote_rule": "own-median"},
    "select": variant(mixer="select"),
    "spherical": {"loss": "spherical"},
    "paper": {"preset": "paper"},
    "all at once": {
        "loss": "log",
        **variant(**DRAWN, error_rate="equal-groups", learner="ada-hedge", pricing="frozen", mixer="select"),
    },
}

OF_THE_SUMS = {**REFERENCES, **RATES, **LEARNERS, **OTHERS}
VARIANTS = {**OF_THE_SUMS, **OF_THE_PATH}

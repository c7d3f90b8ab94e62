"""Feed settings that choose among the variants of the mathematics.

The service runs the defaults; ``stream-peer replay --set method.NAME=VALUE`` runs all of them, to compare.
"""

from typing import Annotated, Literal

import msgspec

Rate = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0, le=1000.0)]


class MethodSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which reference answers, error rates, learner and mixer a feed uses.

    With another reference, error rate or pricing than the default, the vote rule ``auto`` is ``half``.
    """

    reference: Literal["majority", "weighted", "mean", "product"] = "majority"
    against: Literal["others", "everybody", "group-a", "other-group"] = "others"
    groups: Literal["fixed", "redrawn"] = "fixed"
    flip_probability: Annotated[float, msgspec.Meta(ge=0.0, lt=0.5)] = 0.0
    error_rate: Literal[
        "moments",
        "class-moments",
        "two-groups",
        "equal-groups",
        "three-references",
        "three-class-references",
        "outcomes",
        "known",
    ] = "moments"
    known_zero: Rate | None = None
    known_one: Rate | None = None
    learner: Literal[
        "ada-normal-hedge",
        "hedge",
        "any-time-hedge",
        "ada-hedge",
        "fixed-share",
        "follow-the-leader",
        "top-committee",
    ] = "ada-normal-hedge"
    learning_rate: Positive | None = None
    share: Annotated[float, msgspec.Meta(ge=1e-6, lt=1.0)] = 0.002
    committee: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 5
    pricing: Literal["newest", "frozen"] = "newest"
    mixer: Literal["auto", "select", "gradient-hedge", "gradient-normal-hedge", "outcomes", "hybrid", "five"] = "auto"


BUILT_IN = MethodSettings()
PAPER = MethodSettings(
    against="group-a", error_rate="two-groups", learner="any-time-hedge", pricing="frozen", mixer="select"
)
"""The preset ``paper``: everybody against the answer of group A, at the error rate of the time, for good."""


def changed_method(method: MethodSettings) -> dict[str, object]:
    """What differs from the default, by name."""
    values = {name: getattr(method, name) for name in BUILT_IN.__struct_fields__}
    return {name: value for name, value in values.items() if value != getattr(BUILT_IN, name)}

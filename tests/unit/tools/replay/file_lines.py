"""Files of events for the tests of replay."""

import random
from collections.abc import Sequence

from stream_peer.tools.replay.files import FileLine
from tests.unit.questions.question_log import DAY, HOUR, T0, forecast, question, resolution

EXPERTS = 5


def lines(values: Sequence[bytes], name: str = "f") -> list[FileLine]:
    return [FileLine(f"{name}:{number}", value) for number, value in enumerate(values, 1)]


def season(questions: int = 40, feed: str | None = "econ") -> list[bytes]:
    """Questions that open and close one after the other, with revisions; every expert but the last knows something."""
    rng = random.Random(1)
    timed = []
    for number in range(questions):
        name, opens = f"q{number:03d}", T0 + number * 5 * HOUR
        outcome = rng.randrange(2)
        more = {} if feed is None else {"feed": feed}
        timed.append((opens, question(name, opens_at=opens, closes_at=opens + DAY, **more)))
        for expert in range(EXPERTS):
            for revision in range(2):
                at = opens + rng.randrange(revision * 12, revision * 12 + 12) * HOUR
                knows = 0.35 if expert < EXPERTS - 1 else 0.0
                p = min(max(0.5 + (knows if outcome else -knows) + rng.uniform(-0.3, 0.3), 0.0), 1.0)
                timed.append((at, forecast(f"e{expert}", round(p, 3), at, name)))
        timed.append((opens + 2 * DAY, resolution(outcome, opens + 2 * DAY, name)))
    return [value for _, value in sorted(timed, key=lambda one: one[0])]

"""Now and then a feed's last questions are looked through: for what sums cannot tell.

When, depends on the log alone: with every so many new questions. So a restart or a refold looks at the same moments.
"""

from stream_peer.engine.drift import Look, look_for_drift
from stream_peer.engine.feed_state import Feed

CHECK_EVERY = 25
"""New questions from one look to the next."""


def check(feed: Feed) -> None:
    """Look through the last questions, if enough new ones have come since they were looked through last."""
    standing = feed.standing
    if standing.ordinals - standing.checked < CHECK_EVERY:
        return
    standing.checked = standing.ordinals
    standing.drift = look_for_drift(_look(feed), standing.drift)


def _look(feed: Feed) -> Look:
    """What drift is looked for in. With ``memory`` the past is left out: it is forgotten anyhow."""
    variant = feed.method.variant
    return Look(
        window=feed.recent.read(len(feed.roster)),
        number=feed.standing.ordinals // CHECK_EVERY,
        rule=feed.rule,
        past=feed.sums.feed if feed.settings.memory is None else None,
        leaves_one_out=variant is None or variant.against == "others",
        revealed_at_random=not any(shift is not None and shift.found for shift in feed.rates.shifts),
    )

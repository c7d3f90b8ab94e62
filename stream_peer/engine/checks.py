"""Now and then a feed's last questions are looked through: for what sums cannot tell.

When, depends on the log alone: with every so many new questions. So a restart or a refold looks at the same moments.
"""

from stream_peer.engine.feed_state import Feed

CHECK_EVERY = 25
"""New questions from one look to the next."""


def check(feed: Feed) -> None:
    """Look through the last questions, if enough new ones have come since they were looked through last."""
    standing = feed.standing
    if standing.ordinals - standing.checked < CHECK_EVERY:
        return
    standing.checked = standing.ordinals

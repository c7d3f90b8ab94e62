"""Now and then a feed's last questions are looked through: for what sums cannot tell.

When, depends on the log alone: with every so many new questions. So a restart or a rebuild looks at the same moments.
"""

from collections.abc import Sequence

from stream_peer.feeds.alarms.drift import Look, look_for_drift
from stream_peer.feeds.alarms.groups import Group, look_for_copies, look_for_followers, look_for_repeaters, without
from stream_peer.feeds.alarms.recent import Window
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read

CHECK_EVERY = 25
"""New questions from one look to the next."""

MOST_GROUPS = 200
"""More are not kept: they stand in the head of their partition, which is one record."""


def check_alarms(feed: Feed) -> None:
    """Look through the last questions, if enough new ones have come since they were looked through last."""
    path_state = feed.path_state
    if path_state.ordinals - path_state.checked < CHECK_EVERY:
        return
    path_state.checked = path_state.ordinals
    look = _look(feed)
    path_state.drift = look_for_drift(look, path_state.drift)
    path_state.groups = _groups(feed, look.window)
    feed.hold_groups()


def _groups(feed: Feed, window: Window) -> list[Group]:
    """Experts who say the same, without the excluded; of teams nobody needs to find that."""
    roster, path_state = feed.roster, feed.path_state
    absent = [place for expert in roster.excluded if (place := roster.place(expert)) is not None]
    if absent:
        window.votes[:, absent], window.answers[:, absent] = 0, 0
    known = {kind: [group for group in path_state.groups if group.kind == kind] for kind in ("copies", "follower")}
    teams = roster.declared_teams() if roster.teams else None
    turn = path_state.checked // CHECK_EVERY
    before = [expert for group in known["follower"] for expert in group.experts]
    repeaters = look_for_repeaters(window, before) if feed.method.finds_repeaters else []
    copies = look_for_copies(without(window, repeaters), known["copies"], teams, turn, blocks=feed.method.finds_blocks)
    return largest([*copies, *look_for_followers(window, before, copies, repeaters)])


def largest(groups: Sequence[Group]) -> list[Group]:
    """The largest groups, as many as are kept, in the order in which they were found."""
    by_size = sorted(range(len(groups)), key=lambda number: -len(groups[number].experts))
    return [groups[number] for number in sorted(by_size[:MOST_GROUPS])]


def _look(feed: Feed) -> Look:
    """What drift is looked for in. With ``memory`` the past is left out: it is forgotten anyhow."""
    reading = read(feed)
    return Look(
        window=feed.recent.read(len(feed.roster)),
        number=feed.path_state.ordinals // CHECK_EVERY,
        rule=reading.rule,
        past=reading.feed_sums if feed.settings.memory is None else None,
        leaves_one_out=feed.method.leaves_one_out,
        revealed_at_random=not any(shift is not None and shift.found for shift in reading.rates.shifts),
    )

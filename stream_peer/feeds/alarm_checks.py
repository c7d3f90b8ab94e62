"""Now and then a feed's last questions are looked through: for what sums cannot tell.

When, depends on the log alone: with every so many new questions. So a restart or a rebuild looks at the same moments.
"""

from collections.abc import Sequence

from stream_peer.feeds.alarms.drift import Look, look_for_drift
from stream_peer.feeds.alarms.groups import Group, look_for_copies, look_for_followers, look_for_repeaters
from stream_peer.feeds.alarms.recent import Window
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read
from stream_peer.numerics.dependence.in_pieces import Pieces, done_at_once

CHECK_EVERY = 25
"""New questions from one look to the next."""

AT_ONCE = 64
"""Of at most so many experts a look is one piece."""

MOST_GROUPS = 200
"""More are not kept: they stand in the head of their partition, which is one record."""


NAME_EVERY = 200
"""A feed names its blocks in the log at most once in so many questions, as each naming has it rebuilt."""

GROWS_BY = 4
"""And not before it has grown by one part in so many: then all these rebuilds read the log only a few times."""

MOST_NAMED = 1_000
"""Most experts in one record of named blocks: it must fit into a message."""


def check_alarms(feed: Feed) -> Pieces[list[Group]]:
    """Look through the last questions, if enough new ones have come since they were looked through last.

    Of many experts in pieces of some milliseconds; meanwhile nothing may change the feed.

    Returns
    -------
    list of Group
        All blocks of the feed, if they are to be named in the log now; else none.
    """
    path_state = feed.path_state
    if path_state.ordinals - path_state.checked < CHECK_EVERY:
        return []
    path_state.checked = path_state.ordinals
    if len(feed.roster) > AT_ONCE:
        yield from _look_through(feed)
    else:
        done_at_once(_look_through(feed))
    blocks = blocks_to_name(feed) if feed.names_blocks else []
    if blocks:
        path_state.named_at, path_state.is_naming = path_state.checked, True
    return blocks


def _look_through(feed: Feed) -> Pieces[None]:
    """Replace what was found at the last look."""
    path_state = feed.path_state
    yield
    look = _look(feed)
    yield
    path_state.drift = look_for_drift(look, path_state.drift)
    yield
    path_state.groups = yield from _groups(feed, look.window)
    feed.hold_groups()


def blocks_to_name(feed: Feed) -> list[Group]:
    """The blocks of the last look, if one of their experts is new to the log's and enough questions have come."""
    path_state = feed.path_state
    least = max(NAME_EVERY, path_state.named_at // GROWS_BY)
    # Behind a backlog the records would come back one after the other, each for a rebuild of the whole log.
    if path_state.is_naming or (path_state.named_at and path_state.checked < path_state.named_at + least):
        return []
    blocks, n_members = list[Group](), 0
    for group in sorted(path_state.groups, key=lambda one: -len(one.experts)):
        n_members += len(group.experts)
        if group.kind == "copies" and n_members <= MOST_NAMED:
            blocks.append(group)
    known = {expert for block in path_state.blocks for expert in block.experts}
    return [] if known.issuperset(expert for block in blocks for expert in block.experts) else blocks


def _groups(feed: Feed, window: Window) -> Pieces[list[Group]]:
    """Experts who say the same, without the excluded; of teams nobody needs to find that."""
    roster, path_state = feed.roster, feed.path_state
    absent = [place for expert in roster.excluded if (place := roster.place(expert)) is not None]
    window = window.without(absent)
    known = {kind: [group for group in path_state.groups if group.kind == kind] for kind in ("copies", "follower")}
    teams = roster.declared_teams() if roster.teams else None
    turn = path_state.checked // CHECK_EVERY
    before = [expert for group in known["follower"] for expert in group.experts]
    repeaters = look_for_repeaters(window, before) if feed.method.finds_repeaters else []
    given = path_state.blocks if path_state.checked <= path_state.held_until else []
    voting = window.without_votes(repeaters)
    yield
    copies = yield from look_for_copies(voting, known["copies"], teams, turn, given, blocks=feed.method.finds_blocks)
    yield
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

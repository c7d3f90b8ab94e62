"""Path-dependent state of a feed: revision, trust, vote rule, groups; it depends on the order of the log."""

from typing import NamedTuple

import msgspec

from stream_peer.events.outputs import TrustState
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.alarms.drift import Drift
from stream_peer.feeds.alarms.groups import Group
from stream_peer.feeds.columns import VoteRule
from stream_peer.feeds.reading.trust import UNTRIED


class Imported(msgspec.Struct, frozen=True, array_like=True):
    """An earlier release moved the feed here with its state, see ``former_imports``. ``id``: that of the import."""

    id: str


class Ended(NamedTuple):
    """What is kept of a feed that was deleted: how far revisions were ahead of offsets, and the highest."""

    base: int = 0
    revision: int = -1


class PathState(msgspec.Struct, array_like=True):
    """What depends on the path and not only on the sums. It changes the reading, never what was stored.

    ``revision`` and ``at``: of the last record that changed the feed; ``outcomes``: how often an outcome was applied
    or taken back; ``vote_rule``: the one in force; ``switches``: how often it changed; ``base``: what revisions are
    ahead of the offsets of the feed-log; ``lost``: records of it that were gone before they were read; ``ordinals``:
    how many questions were taken in; ``imported``: its first rounds were scored elsewhere.
    ``checked``: how many had been taken in when the last ones were looked through, see ``checks``; ``groups``:
    experts that say the same. ``shrink``: share of uniform weights in the published selection
    weights, see ``trust``. ``drift``: what was found to have changed when the last ones were looked through.
    ``acknowledged``: the state of trust that an operator knows of; None as soon as the state is another.
    """

    revision: int = -1
    at: Milliseconds = 0
    trust: TrustState = UNTRIED
    net_share: float = 0.0
    outcomes: int = 0
    vote_rule: VoteRule = "half"
    switches: int = 0
    base: int = 0
    lost: int = 0
    ordinals: int = 0
    imported: Imported | None = None
    checked: int = 0
    groups: list[Group] = []
    shrink: float = 0.0
    drift: Drift = Drift()
    acknowledged: TrustState | None = None

    def go_on_from(self, before: "PathState") -> None:
        """Say what comes under the revisions of ``before``, which the same records made another way."""
        self.revision, self.at, self.base = before.revision, before.at, before.base
        self.lost, self.imported = before.lost, before.imported
        self.trusted(self.trust, before.acknowledged)

    def trusted(self, trust: TrustState, acknowledged: TrustState | None) -> None:
        """Enter a state of trust; what was acknowledged of another state ends."""
        self.trust = trust
        self.acknowledged = trust if acknowledged == trust else None

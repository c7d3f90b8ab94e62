"""Corrections after a rebuild: what must be published of questions because an expert was erased."""

from collections.abc import Iterator, Set

from stream_peer.events.groups import group_id_of
from stream_peer.feeds.facts import unpack
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.group_outputs import group_outputs
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.outputs import newest_outputs, question_outputs
from stream_peer.log.stage import Output

_IN_ONE_RECORD = 200
"""Experts, however long their ids, of whom no output is large enough to be split."""


def corrections(before: Feed, after: Feed, elsewhere: Set[str]) -> Iterator[Output]:
    """Records of questions in whose rounds an erased expert stood, and tombstones of the parts that are no more.

    After them come those of their groups.

    ``elsewhere``: questions of the feed that other feeds publish.
    """
    groups = dict[str, None]()
    for question_id in questions_without(before, after):
        if question_id in elsewhere:
            continue
        if (group := group_id_of(question_id)) is not None:
            groups[group] = None
        entry, former = after.ledger.entries.get(question_id, Entry()), before.ledger.entries[question_id]
        latest = former.latest()
        outputs = question_outputs(after, read(after), question_id, entry, entry.latest())
        yield from outputs
        if latest is not None and len(latest.experts) > _IN_ONE_RECORD:
            yield from _tombstones(question_outputs(before, read(before), question_id, former, latest), outputs)
    for group in groups:
        parts = before.ledger.groups[group]
        if elsewhere.isdisjoint(parts):
            yield from group_outputs(after, group, parts)
    if len(before.roster.experts) > _IN_ONE_RECORD:
        yield from _tombstones(newest_outputs(before), newest_outputs(after))


def _tombstones(before: list[Output], after: list[Output]) -> Iterator[Output]:
    """Tombstones of keys that ``after`` does not write, since it has fewer parts: else their last record would stay."""
    written = {(output.topic, output.key) for output in after}
    for output in before:
        if (output.topic, output.key) not in written:
            yield Output(output.topic, output.key, None, after[0].timestamp)


def questions_without(before: Feed, after: Feed) -> Iterator[str]:
    """Questions in whose rounds an expert stood that ``after`` has erased."""
    gone = {place for place, expert in enumerate(before.roster.experts) if after.roster.is_erased(expert)}
    if gone:
        for question_id, entry in before.ledger.entries.items():
            said = (*entry.rounds, *filter(None, (entry.first_final,)))
            if any(not gone.isdisjoint(unpack(packed).experts.tolist()) for packed in said):
                yield question_id

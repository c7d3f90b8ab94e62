"""Blocks of experts who say the same: the log names them, and the feed is rebuilt as if it had known them all along."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import BlockNamed, FeedLogRecord, NamedBlock, Round, Source, read_feed_log
from stream_peer.feeds.alarm_checks import MOST_NAMED, NAME_EVERY, blocks_to_name
from stream_peer.feeds.alarms.groups import Group
from stream_peer.feeds.facts import unpack
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.driver import pump, rebuild
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.tools.transfer.feed_file import RecordLine
from tests.feed_histories import Changelog, changed, expert, log_of, outcome, round_of, settings, stage
from tests.feed_transfers import lines_of

GOOD = [f"good{number}" for number in range(5)]
FIRST, SECOND = ([f"{name}{number}" for number in range(4)] for name in ("clone", "twin"))
NAMED_AT = 25
"""Questions after which the look finds the first block."""


def rounds(questions: int, seconds_from: int | None = None) -> list[Round]:
    """Good experts, four clones of one mind, and later on four of another."""
    rng = np.random.default_rng(4)
    said = []
    for number in range(questions):
        side = 1 if rng.random() < 0.5 else -1
        good = np.where(rng.random(5) < 0.15, -side, side)
        first, second = np.where(rng.random(2) < 0.4, -side, side)
        row = dict(zip(GOOD, good, strict=True)) | dict.fromkeys(FIRST, first)
        if seconds_from is not None and number >= seconds_from:
            row |= dict.fromkeys(SECOND, second)
        forecasts = {name: round(float(0.5 + 0.4 * vote * rng.uniform(0.8, 1.0)), 3) for name, vote in row.items()}
        said.append(round_of(f"q{number}", forecasts, final=True))
    return said


class Life:
    """A stage with its log, into which it writes what it has to say itself."""

    def __init__(self, **defaults: object) -> None:
        self.stage, self.log = stage(**{"method_version": 2, **defaults}), list[LogRecord]()
        self.effects = Effects()

    def fold(self, events: Iterable[FeedLogRecord], *, writes: bool = True) -> "Life":
        for event in events:
            self._fold(*log_of([event], len(self.log)))
            while writes and (due := self.stage.hand_overs_due()):
                self.stage.handed_over()
                for output in due:
                    assert (output.topic, output.key) == (topics.FEED_LOG, b"f")
                    self._fold(LogRecord(len(self.log), output.timestamp, output.key, output.value))
        return self

    def _fold(self, record: LogRecord) -> None:
        self.log.append(record)
        self.stage.step(record, self.effects)
        while self.stage.needs_rebuild:
            self.effects.outputs += pump(rebuild(self.stage, record.offset), lambda up_to: self.log[: up_to + 1])

    @property
    def feed(self) -> Feed:
        return self.stage.feeds.by_name["f"]

    @property
    def named(self) -> list[BlockNamed]:
        read = (read_feed_log(record.value) for record in self.log)
        return [event for event in read if isinstance(event, BlockNamed)]

    def voters(self, question: int) -> int:
        return self.feed.ledger.entries[f"q{question}"].facts()[-1].votes.voters

    def rebuilt(self) -> FeedStage:
        """Another stage, of the same log alone."""
        other = stage(method_version=2)
        other.rebuild_all()
        while other.needs_rebuild:
            for _ in pump(rebuild(other, self.log[-1].offset), lambda up_to: self.log[: up_to + 1]):
                pass
        return other


def experts_of(event: BlockNamed) -> list[list[str]]:
    return [block.experts for block in event.blocks]


def test_a_feed_that_finds_a_block_writes_it_to_its_log_and_is_rebuilt_with_one_voice_of_it_from_the_start() -> None:
    before, after = Life().fold(rounds(NAMED_AT - 1)), Life().fold(rounds(NAMED_AT))

    assert not before.named
    assert before.voters(0) == 9
    (event,) = after.named
    assert (event.questions, experts_of(event)) == (NAMED_AT, [FIRST])
    assert [after.voters(question) for question in (0, 12, NAMED_AT - 1)] == [6, 6, 6]
    assert after.stage.agrees()
    corrected = {output.key for output in after.effects.outputs if output.topic == topics.REFERENCE_ANSWERS}
    assert b"q0" in corrected


def test_what_was_scored_first_stays_the_scored_forecast() -> None:
    before, after = Life().fold(rounds(NAMED_AT - 1)), Life().fold(rounds(NAMED_AT))

    was, entry = before.feed.ledger.entries["q12"], after.feed.ledger.entries["q12"]
    assert was.first_final is not None
    assert entry.first_final is not None
    assert unpack(entry.first_final).mix.mix == unpack(was.first_final).mix.mix
    assert entry.facts()[-1].mix.mix != unpack(was.first_final).mix.mix
    assert entry.revision == was.revision


def test_the_log_alone_gives_the_same_feed() -> None:
    life = Life().fold([*rounds(NAMED_AT + 40), outcome("q3", 1)])
    other = life.rebuilt()

    feed, again = life.feed, other.feeds.by_name["f"]
    assert again.buckets.equals(feed.buckets)
    assert again.path_state == feed.path_state


def test_the_record_is_written_by_whoever_owns_the_feed_after_a_restart() -> None:
    life = Life().fold(rounds(NAMED_AT), writes=False)
    changelog = Changelog()
    changelog.take(life.stage)

    restarted = changelog.restored(method_version=2)

    assert life.stage.hand_overs_due()
    assert restarted.hand_overs_due() == life.stage.hand_overs_due()


def test_a_record_that_is_written_twice_rebuilds_once() -> None:
    life = Life().fold(rounds(NAMED_AT))
    (event,) = life.named
    again = msgspec.structs.replace(event, src=Source("forecast-events", 0, 0, 10_000, 0))

    life.stage.step(LogRecord(len(life.log), life.log[-1].timestamp, b"f", msgspec.json.encode(again)), Effects())

    assert not life.stage.needs_rebuild


def test_a_feed_names_blocks_once_in_two_hundred_questions_and_then_all_of_them() -> None:
    life = Life().fold(rounds(NAMED_AT + NAME_EVERY, seconds_from=NAMED_AT))

    first, second = life.named
    assert (first.questions, experts_of(first)) == (NAMED_AT, [FIRST])
    assert second.questions == NAMED_AT + NAME_EVERY
    assert sorted(experts_of(second)) == [FIRST, SECOND]
    assert life.voters(NAMED_AT + 10) == 7
    assert life.rebuilt().feeds.by_name["f"].buckets.equals(life.feed.buckets)


def test_while_its_record_has_not_come_back_a_feed_names_no_other_blocks() -> None:
    said = rounds(NAMED_AT + NAME_EVERY + 75, seconds_from=NAMED_AT)
    life = Life().fold(said[:-25], writes=False)
    assert len(life.stage.hand_overs_due()) == 1

    life.fold(said[-25:])

    first, second = life.named
    assert experts_of(first) == [FIRST]
    assert sorted(experts_of(second)) == [FIRST, SECOND]
    assert not life.feed.path_state.is_naming


@pytest.mark.parametrize("defaults", [{"method_version": 1, "guard": "on"}, {"guard": "off"}])
def test_no_block_is_written_by_version_1_or_without_guard_and_none_is_heeded(defaults: dict[str, Any]) -> None:
    life = Life(**defaults).fold(rounds(NAMED_AT + 25))
    blocks = [NamedBlock(experts=FIRST, agreement=1.0, expected=0.1, questions=50)]

    life.fold([BlockNamed(src=Source("forecast-events", 0, 0, 0, 0), feed="f", questions=50, blocks=blocks)])

    assert len(life.named) == 1
    assert life.feed.path_state.blocks == []
    assert life.voters(0) == 9


def test_a_feed_that_comes_to_version_2_heeds_the_blocks_that_its_log_names() -> None:
    life = Life().fold(rounds(NAMED_AT))
    life.fold([settings({"defaults": {"method_version": 1}})])
    assert life.voters(0) == 9

    life.fold([settings({"defaults": {"method_version": 2}})])

    assert life.voters(0) == 6
    assert life.feed.path_state.held_until == NAMED_AT


def test_after_a_reset_the_log_names_the_block_again() -> None:
    life = Life().fold([*rounds(NAMED_AT), changed(reset=True)])
    assert life.feed.path_state.blocks == []

    fresh = (msgspec.structs.replace(event, question_id=f"new-{event.question_id}") for event in rounds(NAMED_AT))
    life.fold(fresh)

    assert len(life.named) == 2
    assert life.feed.ledger.entries["new-q0"].facts()[-1].votes.voters == 6
    assert life.rebuilt().feeds.by_name["f"].buckets.equals(life.feed.buckets)


def test_who_is_erased_is_in_no_block_of_a_rebuild() -> None:
    life = Life().fold([*rounds(NAMED_AT), expert(FIRST[0], forget=True)])

    names = life.feed.roster.experts
    assert FIRST[0] not in names
    assert [[names[place] for place in block.experts] for block in life.feed.path_state.blocks] == [FIRST[1:]]
    assert life.voters(0) == 6


def test_of_blocks_with_very_many_members_the_largest_are_named() -> None:
    feed = Life().fold(rounds(1)).feed
    small, large = (
        Group(list(range(start, start + size)), "copies", 1.0, 0.1, 50) for start, size in ((0, 4), (4, 998))
    )
    follower = Group([2_000], "follower", 1.0, 0.1, 50)
    feed.path_state.groups = [small, large, follower]

    assert len(small.experts) + len(large.experts) > MOST_NAMED
    assert blocks_to_name(feed) == [large]


def test_a_feed_moves_with_its_blocks_but_for_who_was_forgotten() -> None:
    life = Life().fold([*rounds(NAMED_AT), expert(FIRST[0], forget=True)])

    records = [line.record for line in lines_of(life.stage, life.log) if isinstance(line, RecordLine)]
    moved = [record for record in records if isinstance(record, BlockNamed)]

    assert [experts_of(event) for event in moved] == [[FIRST[1:]]]
